// The peak of memory that `run` predicts, against the storages that PyTorch 2.11 held in the same
// training (docs/oracle.md).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace memory_oracle_test {
using nlohmann::json;

namespace {

std::vector<json> recordings() {
  std::vector<json> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/memory")) {
    std::ifstream file(entry.path());
    all.push_back(json::parse(file));
  }
  std::ranges::sort(all, {}, [](const json& each) { return each["name"].get<std::string>(); });
  return all;
}

cli::Rehearsal run_of(const json& scenario, bool advise) {
  cli::Collected collected = cli::collect(source_of_text(scenario.dump()));
  REQUIRE(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.explore = false;
  request.advise = advise;
  cli::rehearse_all(collected.jobs, request, cli::Judges::quantities, 1);
  return std::move(collected.jobs.front().result);
}

}  // namespace

// Beyond 1 % nothing is known to differ. What remains: tensors of some bytes for each class or
// channel, and that MultiheadAttention copies nothing where the batch is 1.
TEST_CASE("the peak is within 1 % of what PyTorch's tensors held") {
  constexpr double bound = 0.01;
  const std::vector<json> all = recordings();
  CHECK(all.size() >= 46);
  for (const json& recording : all) {
    const cli::Rehearsal ran = run_of(recording["scenario"], false);
    REQUIRE(ran.ran());
    const auto ours = static_cast<double>(ran.results.ranks.front().memory.peak.count());
    const auto theirs = recording["peak"].get<double>();
    INFO(fmt::format("{}: PyTorch {:.1f} MiB, predicted {:.1f} MiB ({:+.2f} %)",
                     recording["name"].get<std::string>(), theirs / (1 << 20), ours / (1 << 20),
                     100 * (ours / theirs - 1)));
    CHECK(ours == Approx(theirs).epsilon(bound).scale(0));
  }
}

// What stays from step to step is exact, but for the batch: PyTorch holds nothing else there.
TEST_CASE("parameters and gradients and optimizer state at the peak are those of PyTorch") {
  for (const json& recording : recordings()) {
    const cli::Rehearsal ran = run_of(recording["scenario"], false);
    const MemoryByPurpose& ours = ran.results.ranks.front().memory.peak_by_purpose;
    const json& theirs = recording["at_peak"];
    INFO(recording["name"]);
    for (const auto& [purpose, key] : {std::pair(Purpose::parameter, "parameter"),
                                       std::pair(Purpose::optimizer_state, "optimizer_state")}) {
      CHECK(ours[static_cast<size_t>(purpose)].count() == theirs[key].get<int64_t>());
    }
  }
}

// At 8 samples the peak of the recording is in the backward of log-softmax, after zero_grad: there
// all but parameters and optimizer state grows with the batch. 512 MiB of 80 GiB are the context's.
TEST_CASE("the largest batch of GPT-2 that fits follows from what PyTorch held for 8 samples") {
  json scenario;
  double others = 0;
  double sample = 0;
  for (const json& recording : recordings()) {
    if (recording["name"] == "gpt2-32-true-8") {
      const json& parts = recording["at_peak"];
      others = parts["parameter"].get<double>() + parts["optimizer_state"].get<double>();
      sample = (recording["peak"].get<double>() - others) / 8;
      scenario = recording["scenario"];
    }
  }
  const double room = 80.0 * (1 << 30) - 512.0 * (1 << 20);
  const cli::Rehearsal ran = run_of(scenario, true);
  REQUIRE(ran.results.advice.largest_batch_size);
  CHECK(*ran.results.advice.largest_batch_size == static_cast<int64_t>((room - others) / sample));
}

}  // namespace memory_oracle_test
