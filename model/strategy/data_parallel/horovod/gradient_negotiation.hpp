#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/exchange/negotiation/negotiator.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// How Horovod's DistributedOptimizer hands gradients over.
struct GradientNegotiationOptions {
  int64_t passes_per_step = 1;  ///< backwards after which a gradient is handed over by its hook
  bool in_half_precision = false;
};

/// What an event of the device is called that stands for a parameter's gradient.
std::string gradient_name(const Network& network, ParameterPlace place);
SiteId gradient_site(const Network& network, ParameterPlace place);

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

 private:
  struct InFlight {
    size_t parameter = 0;
    Slice narrow;  ///< what travels in half precision
    int64_t handle = 0;
  };

  void hand_over(Rank& rank, size_t parameter, Ticket done);

  Replica* replica_;
  std::shared_ptr<Negotiator> negotiator_;
  GradientNegotiationOptions options_;
  std::vector<int64_t> passes_left_;  ///< by parameter
  std::vector<bool> handed_over_;     ///< by parameter
  std::vector<InFlight> in_flight_;
};

}  // namespace lockstep
