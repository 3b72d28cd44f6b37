#pragma once

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// The loss of a forward, and where its backward begins.
class LossPass : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  Ticket forward(Rank& rank, bool training);
  Ticket backward(Rank& rank, const StepOptions& options, After after);

 private:
  const Layer& loss() const { return network().loss_of(static_cast<int32_t>(now_.last_module)); }
  Ticket submit_forward(Rank& rank);
  Ticket submit_backward(Rank& rank, double factor, After after);
  Ticket backward_of_own_loss(Rank& rank, const StepOptions& options, After after);
  SampleComparison::Call comparison_call() const;
};

}  // namespace lockstep
