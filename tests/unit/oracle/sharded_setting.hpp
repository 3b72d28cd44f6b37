#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/network/network.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep::test {

/// The network of a recorded setting, with the segments that it checkpoints, and what each rank
/// computes of it where ranks compute layers together.
struct SettingNetworks {
  std::shared_ptr<const Network> whole;
  std::shared_ptr<const Network> cut;  ///< mostly null

  const Network& of_rank() const { return cut ? *cut : *whole; }
  /// Which layer of the whole network a rank's layer is; none: what cutting has put in between.
  std::optional<size_t> layer_of_whole(size_t layer) const;
};
SettingNetworks sharded_networks(const nlohmann::json& setting);
/// The plan of a recorded setting of a sharded strategy, with what its family asks of it. The
/// networks outlive it.
TrainingPlan sharded_plan(const nlohmann::json& setting, const SettingNetworks& networks);

/// Our strategy for a recorded setting: one rank's.
std::unique_ptr<Strategy> sharded_strategy(const nlohmann::json& setting, const TrainingPlan& plan);

/// The operations of a rank in the order of ours. The mark of a layer's backward is made before
/// autograd asks for what the layer saved, and the second forward of a segment begins with that:
/// the mark is moved behind it.
nlohmann::json with_second_forwards_first(const nlohmann::json& setting,
                                          const nlohmann::json& operations);

}  // namespace lockstep::test
