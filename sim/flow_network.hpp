#pragma once

#include <cstdint>
#include <vector>

#include "sim/cost.hpp"

namespace lockstep::sim {

/// Transfers in progress and what each gets of the links that it shares with others: max-min
/// fairness by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2), where a transfer
/// of rate r takes weight * r of a link. A transfer that shares no link gets what its bottleneck
/// gives and is computed exactly, in integers.
class FlowNetwork {
 public:
  /// A new finishing time of a flow, to be put in the event queue; older ones with a lower
  /// generation are void.
  struct Forecast {
    uint32_t flow = 0;
    uint32_t generation = 0;
    Time finish{};
  };

  explicit FlowNetwork(const std::vector<BytesPerSecond>& capacities);

  /// Starts a transfer. The forecasts say when it, and those that it slowed down, will finish (the
  /// volume moved; latency is the caller's).
  uint32_t start(Time now, const TransferPlan& plan, std::vector<Forecast>& forecasts);
  /// True when this forecast still holds: the flow ends here and those it held back speed up.
  bool finish(Time now, uint32_t flow, uint32_t generation, std::vector<Forecast>& forecasts);
  /// Whether a transfer is on its way over this link.
  bool carries(LinkIndex link) const { return !links_[link].flows.empty(); }
  /// Whether this transfer shares a link with another so that, of one that stands for others, these
  /// would share it otherwise (TransferPlan): then what it gets of it is not what they would get.
  bool is_shared_unevenly(uint32_t index) const;
  /// Whether a forecast still holds.
  bool holds(uint32_t flow, uint32_t generation) const {
    return flows_[flow].active && flows_[flow].generation == generation;
  }
  /// A link becomes slower or faster (> 0).
  void set_capacity(Time now, LinkIndex link, BytesPerSecond capacity,
                    std::vector<Forecast>& forecasts);

 private:
  friend class WorldState;
  struct Flow {
    TransferPlan plan{};
    double remaining_bytes = 0;
    double rate = 0;  ///< bytes per second
    Time since{};     ///< when `remaining_bytes` was right
    uint32_t generation = 0;
    uint64_t order = 0;  ///< of its start among all
    bool active = false;
    bool visited = false;

    const std::vector<LinkIndex>& links() const { return *plan.links; }
    bool is_uneven() const { return plan.uneven != nullptr || plan.uneven_columns != nullptr; }
    /// Whether others may meet other flows than this one does.
    bool is_of_many() const { return plan.stands_for_others || plan.columns > 1; }
    /// By itself.
    uint32_t own_weight(size_t place) const {
      return plan.weights == nullptr ? 1 : (*plan.weights)[place];
    }
    /// With those for which it stands.
    uint32_t weight(size_t place) const {
      return plan.with_columns == nullptr ? own_weight(place) : (*plan.with_columns)[place];
    }
  };
  struct Link {
    double capacity = 0;
    std::vector<uint32_t> flows;
    // Scratch of one filling:
    double left = 0;
    uint64_t unfixed = 0;  ///< sum of weights
    bool visited = false;
  };

  bool shares(const Flow& flow) const;
  static bool is_crossed_unevenly(const Flow& alone, const Flow& wide, LinkIndex link);
  Time time_alone(const TransferPlan& plan, double& rate) const;
  void share_anew(Time now, std::vector<uint32_t> affected, std::vector<Forecast>& forecasts);
  void collect_component(std::vector<uint32_t>& flows, std::vector<LinkIndex>& links);
  void fill(const std::vector<uint32_t>& flows, const std::vector<LinkIndex>& links);
  void leave_links(uint32_t index, std::vector<uint32_t>& neighbours);

  std::vector<BytesPerSecond> capacities_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_;
  uint64_t started_ = 0;
  std::vector<uint32_t> uneven_flows_;  ///< under way
};

}  // namespace lockstep::sim
