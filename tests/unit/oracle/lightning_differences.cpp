#include "tests/unit/oracle/lightning_differences.hpp"

#include <algorithm>
#include <array>

namespace lockstep::test {

namespace {

constexpr auto awaited = std::to_array<const char*>({
    // gradients through all_gather
    "gather-with-gradients",
    // signals that Lightning handles
    "signal-between-batches",
});

struct Difference {
  const char* recording;
  std::vector<std::string> parts;
};

const std::vector<Difference>& differences() {
  static const std::vector<Difference> known = {
      // Recorded with rows of the logger at every step, which the scenario does not say.
      {"scheduler-of-each-step", {"callback_metrics"}},
  };
  return known;
}

}  // namespace

bool is_awaited(const std::string& recording) {
  return std::ranges::find(awaited, recording) != awaited.end();
}

std::vector<std::string> known_differences(const std::string& recording) {
  for (const Difference& difference : differences()) {
    if (difference.recording == recording) {
      return difference.parts;
    }
  }
  return {};
}

std::vector<std::string> excepted_recordings() {
  std::vector<std::string> names(awaited.begin(), awaited.end());
  for (const Difference& difference : differences()) {
    names.emplace_back(difference.recording);
  }
  return names;
}

}  // namespace lockstep::test
