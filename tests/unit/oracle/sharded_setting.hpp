#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "model/network/network.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep::test {

/// The network of a recorded setting, with the segments that it checkpoints.
Network sharded_network(const nlohmann::json& setting);
/// The plan of a recorded setting of a sharded strategy, with what its family asks of it. The
/// network outlives it.
TrainingPlan sharded_plan(const nlohmann::json& setting, const Network& network);

/// Our strategy for a recorded setting: one rank's.
std::unique_ptr<Strategy> sharded_strategy(const nlohmann::json& setting, const TrainingPlan& plan);

/// The operations of a rank in the order of ours. The mark of a layer's backward is made before
/// autograd asks for what the layer saved, and the second forward of a segment begins with that:
/// the mark is moved behind it.
nlohmann::json with_second_forwards_first(const nlohmann::json& setting,
                                          const nlohmann::json& operations);

}  // namespace lockstep::test
