#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "model/strategy/strategy.hpp"
#include "tests/unit/oracle/sharded_setting.hpp"

namespace lockstep::test {

/// The recordings of a family of strategies (docs/oracle.md), by name.
std::vector<nlohmann::json> sharded_recordings(const std::string& family);

struct OurRank {
  std::vector<double> losses;
  std::vector<HeldParameter> held;
  std::vector<Values> values;
  Bytes written{};  ///< into the checkpoint
};
struct OurRun {
  std::vector<OurRank> ranks;
  RunResult result;
};
/// The training of a recorded setting here, in the simulated world with values.
OurRun our_sharded_run(const nlohmann::json& setting, const SettingNetworks& networks);

/// Every rank's calls are those of the recording, between the same layers.
void check_calls_of(const nlohmann::json& recorded);
/// So are losses and weights.
void check_values_of(const nlohmann::json& recorded);

}  // namespace lockstep::test
