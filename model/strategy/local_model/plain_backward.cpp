#include "model/strategy/local_model/plain_backward.hpp"

namespace lockstep {

void plain_backward(Rank& rank, Replica& replica, const StepOptions& options) {
  const int64_t last = replica.last_forward();
  for (const BackwardPass& pass : replica.take_passes(options)) {
    replica.turn_to(pass.forward);
    replica.backward_of_loss(rank, pass.applied_to(options));
    for (const size_t layer : replica.layers_last_to_first()) {
      replica.backward(rank, layer);
    }
    replica.forget_forward(rank);
  }
  replica.return_to(last);
}

}  // namespace lockstep
