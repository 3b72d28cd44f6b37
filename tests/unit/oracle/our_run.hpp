#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/network/network.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/strategy.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

/// The network that a setting describes, and how it is trained. The network outlives the plan.
Network network_of_setting(const nlohmann::json& setting);
TrainingPlan plan_of_setting(const nlohmann::json& setting, const Network& network);

/// What the product does in a setting of tests/oracle/settings.py, in the simulated world with
/// values: one entry per rank, written as a recording of the real framework is.
nlohmann::json our_run(const nlohmann::json& setting);
/// The same under a strategy other than ddp, without the operations of its ranks.
struct StrategyRun {
  nlohmann::json ranks;
  RunResult result;
};
using MakeStrategyOfSetting = std::function<std::unique_ptr<Strategy>(const TrainingPlan&)>;
StrategyRun our_run(const nlohmann::json& setting, const MakeStrategyOfSetting& make);

}  // namespace lockstep::test
