#include "model/strategy/local_model/plain_backward.hpp"

namespace lockstep {

void plain_backward(Rank& rank, Replica& replica, const StepOptions& options) {
  const int64_t last = replica.forwards().last();
  for (const BackwardPass& pass : replica.forwards().take_passes(options)) {
    replica.forwards().turn_to(pass.forward);
    replica.backward_of_loss(rank, pass.applied_to(options));
    for (const size_t layer : replica.layers_last_to_first()) {
      replica.backward(rank, layer);
    }
    replica.forget_forward(rank);
  }
  replica.forwards().return_to(last);
}

}  // namespace lockstep
