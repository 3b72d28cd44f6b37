#pragma once

#include <cstdint>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/flow_network.hpp"

namespace lockstep::sim {

/// The links that transfers share: puts on the agenda when each of them will have moved its volume,
/// anew whenever that changes.
class SharedLinks {
 public:
  /// The agenda outlives it.
  SharedLinks(const std::vector<BytesPerSecond>& capacities, Agenda& agenda)
      : agenda_(agenda), flows_(capacities) {}

  /// Starts to move the volume now. Its index.
  uint32_t start(const TransferPlan& plan) {
    const uint32_t flow = flows_.start(agenda_.now(), plan, forecasts_);
    push_forecasts();
    return flow;
  }
  /// What the agenda foretold has come: whether the flow ends now. If not, it was foretold anew.
  bool finish(uint32_t flow, uint32_t generation) {
    if (!flows_.finish(agenda_.now(), flow, generation, forecasts_)) {
      return false;
    }
    push_forecasts();
    return true;
  }
  /// From now on.
  void set_capacity(LinkIndex link, BytesPerSecond capacity) {
    flows_.set_capacity(agenda_.now(), link, capacity, forecasts_);
    push_forecasts();
  }
  bool carries(LinkIndex link) const { return flows_.carries(link); }
  bool is_shared_unevenly(uint32_t flow) const { return flows_.is_shared_unevenly(flow); }

 private:
  friend class WorldState;

  void push_forecasts() {
    for (const FlowNetwork::Forecast& forecast : forecasts_) {
      agenda_.push(forecast.finish, Agenda::Kind::flow_finish, forecast.flow, forecast.generation);
    }
    forecasts_.clear();
  }

  Agenda& agenda_;
  FlowNetwork flows_;
  std::vector<FlowNetwork::Forecast> forecasts_;
};

}  // namespace lockstep::sim
