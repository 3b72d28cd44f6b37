#include "properties/diagnosis/access_history.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace lockstep;

namespace access_history_test {

namespace {

/// By its definition: every earlier use that nothing orders, and of which one writes or releases.
/// None is ever dropped, so there may be more of them.
std::vector<const Access*> unordered_with(const std::vector<Access>& earlier, const Access& access,
                                          const VectorClock& clock) {
  std::vector<const Access*> found;
  for (const Access& each : earlier) {
    const bool same = each.component == access.component && each.count == access.count;
    if (each.slice.overlaps(access.slice) && !each.before(clock) && !same &&
        (each.writes || access.writes || access.releases)) {
      found.push_back(&each);
    }
  }
  return found;
}

}  // namespace

// Slices of 1 to 512 elements, by three streams that sometimes wait for each other.
TEST_CASE("a use collides with the earlier ones that overlap it, whatever their lengths") {
  size_t races = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t end) { return static_cast<uint32_t>(random() % end); };
    AccessHistory history;
    std::vector<Access> earlier;
    std::vector<VectorClock> clocks(3);
    for (uint32_t number = 0; number < 120; ++number) {
      const uint32_t stream = below(3);
      if (below(3) == 0) {
        clocks[stream].join(clocks[below(3)]);
      }
      Access access;
      const int64_t elements = int64_t{1} << below(10);
      access.slice = {BufferId{1}, DType::fp32, int64_t{below(600)}, elements};
      access.writes = below(4) == 0;
      access.reads = !access.writes || below(2) == 0;
      access.component = stream;
      access.count = clocks[stream].at(stream) + 1;
      const std::vector<const Access*> expected = unordered_with(earlier, access, clocks[stream]);
      const std::vector<Race> found = history.add(access, clocks[stream]);
      REQUIRE(found.empty() == expected.empty());
      auto next = expected.begin();  // in their order; of those that another covers, that one
      for (const Race& race : found) {
        next = std::find_if(next, expected.end(), [&race](const Access* each) {
          return each->component == race.first.component && each->count == race.first.count;
        });
        REQUIRE(next != expected.end());
        ++next;
      }
      races += found.size();
      if (!found.empty()) {
        for (const VectorClock& other : clocks) {
          clocks[stream].join(other);
        }
      }
      clocks[stream].set(stream, access.count);
      earlier.push_back(access);
    }
  }
  CHECK(races > 100);
}

}  // namespace access_history_test
