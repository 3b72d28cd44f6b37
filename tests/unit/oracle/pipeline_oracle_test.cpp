// Our pipelines under data parallelism against recordings of torch's (docs/oracle.md): schedules of
// torch.distributed.pipelining with fully_shard, or DistributedDataParallel, around each stage. The
// same messages and collectives of the same ranks between the same layers, the same losses and
// weights.
#include <catch2/catch.hpp>

#include "tests/unit/oracle/sharded_comparison.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace pipeline_oracle_test {
using nlohmann::json;

namespace {

/// Read once: each section begins its test case anew.
const std::vector<json>& pipeline_recordings() {
  static const std::vector<json> all = sharded_recordings("pipeline");
  return all;
}

}  // namespace

TEST_CASE("pipelines issue torch's messages and collectives between the same layers") {
  for (const json& recorded : pipeline_recordings()) {
    DYNAMIC_SECTION(recorded["setting"]["name"].get<std::string>()) { check_calls_of(recorded); }
  }
}

TEST_CASE("pipelines compute torch's losses and weights") {
  for (const json& recorded : pipeline_recordings()) {
    DYNAMIC_SECTION(recorded["setting"]["name"].get<std::string>()) { check_values_of(recorded); }
  }
}

}  // namespace pipeline_oracle_test
