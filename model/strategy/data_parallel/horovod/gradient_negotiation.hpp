#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/exchange/negotiation/negotiator.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// How Horovod's DistributedOptimizer hands gradients over.
struct GradientNegotiationOptions {
  int64_t passes_per_step = 1;  ///< backwards after which a gradient is handed over by its hook
  /// Gradients are handed over in so many groups of neighbouring parameters, each once it is whole;
  /// 0: by themselves.
  int64_t groups = 0;
  bool in_half_precision = false;
  bool sums = false;  ///< op=hvd.Sum, in place of the average
};

/// What an event of the device is called that stands for a parameter's gradient.
std::string gradient_name(const Network& network, ParameterPlace place, bool in_group);
SiteId gradient_site(const Network& network, ParameterPlace place, bool in_group);

/// Each gradient is averaged under its parameter's name, whenever all ranks have it, in any order
/// (horovod/torch/optimizer.py, _DistributedOptimizer).
class GradientNegotiation final : public GradientExchange {
 public:
  GradientNegotiation(Replica& replica, std::shared_ptr<Negotiator> negotiator,
                      const GradientNegotiationOptions& options);

  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank& rank, size_t layer, Ticket done) override;
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return negotiator_->take_reduced_bytes(); }
  /// What its hooks have counted since the last synchronize.
  void remember(ProgramMemory& memory) const;

 private:
  struct InFlight {
    size_t parameter = 0;
    Slice narrow;  ///< what travels in half precision
    int64_t handle = 0;
  };

  /// What makes up one call of the hooks.
  struct Group {
    std::vector<size_t> parameters;
    size_t ready = 0;  ///< of them, since the last synchronize
  };

  void add_groups(std::span<const size_t> trained);
  void count_pass(Rank& rank, size_t parameter, Ticket done);
  void hand_over(Rank& rank, size_t parameter, Ticket done, bool in_group);

  Replica* replica_;
  std::shared_ptr<Negotiator> negotiator_;
  GradientNegotiationOptions options_;
  std::vector<int64_t> passes_left_;  ///< by parameter
  std::vector<bool> handed_over_;     ///< by parameter
  std::vector<Ticket> done_;          ///< by parameter: its gradient of this backward
  std::vector<size_t> held_back_;     ///< by hooks, in their order, until synchronize
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  ///< by parameter
  std::vector<InFlight> in_flight_;
};

}  // namespace lockstep
