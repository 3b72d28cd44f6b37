// Our tensor parallelism against recordings of torch's (docs/oracle.md): parallelize_module, alone
// and under fully_shard. The same collectives of the same ranks between the same layers, the same
// losses and weights.
#include <catch2/catch.hpp>

#include "tests/unit/oracle/sharded_comparison.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace tensor_oracle_test {
using nlohmann::json;

namespace {

/// Read once: each section begins its test case anew.
const std::vector<json>& tensor_recordings() {
  static const std::vector<json> all = sharded_recordings("tensor");
  return all;
}

}  // namespace

TEST_CASE("tensor parallelism issues torch's collectives between the same layers") {
  for (const json& recorded : tensor_recordings()) {
    DYNAMIC_SECTION(recorded["setting"]["name"].get<std::string>()) { check_calls_of(recorded); }
  }
}

TEST_CASE("tensor parallelism computes torch's losses and weights") {
  for (const json& recorded : tensor_recordings()) {
    if (recorded["ranks"][0]["ended"] == "finished") {
      DYNAMIC_SECTION(recorded["setting"]["name"].get<std::string>()) { check_values_of(recorded); }
    }
  }
}

}  // namespace tensor_oracle_test
