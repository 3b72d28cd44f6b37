// A replica that holds and runs some layers alone: a stage of a pipeline.
#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

void Replica::hold_only(const std::vector<bool>& layers) {
  ensure(!is_allocated_ && layers.size() == network().layers.size(), "said of every layer, once");
  held_layers_ = layers;
  held_parameters_.assign(parameters_.size(), false);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const size_t parameter : parameters_of(layer)) {
      held_parameters_[parameter] = held_parameters_[parameter] || layers[layer];
    }
  }
}

void Replica::begin_part(Rank& rank, const Batch& batch, const StepOptions& options,
                         const Part& part) {
  begin_any_forward(rank, batch, options);
  if (part.input) {
    now_.first_wanted_layer = 0;  // the rank before waits for the gradient of its output
    now_.current = *part.input;
  } else {
    const Slice host = bring_input(rank, batch, options);
    now_.input = rank.allocate(Purpose::input, host.dtype, host.elements, device_);
    copy_to_device(rank, host, now_.input, {});
    rank.release(host);
    now_.transient.push_back(now_.input);
    now_.current = now_.input;
  }
  if (part.has_loss) {
    const Slice host = bring_target(rank, batch, options);
    now_.target = rank.allocate(Purpose::input, host.dtype, host.elements, device_);
    copy_to_device(rank, host, now_.target, {});
    rank.release(host);
    now_.transient.push_back(now_.target);
  }
}

Slice Replica::take_input_gradient() {
  std::erase_if(now_.transient,
                [&](const Slice& each) { return each.buffer == now_.gradient.buffer; });
  return std::exchange(now_.gradient, {});
}

void Replica::end_part(Rank& rank, const StepOptions& options) {
  free_weight_copies(rank, options.training);
}

}  // namespace lockstep
