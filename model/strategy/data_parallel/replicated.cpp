#include "model/strategy/data_parallel/replicated.hpp"

#include "model/strategy/local_model/forward_of.hpp"

namespace lockstep {

ReplicatedDataParallel::ReplicatedDataParallel(const TrainingPlan& plan,
                                               const TrainingPlan& computing,
                                               std::string_view gradients_label)
    : DistributedStrategy(plan),
      gradients_label_(gradients_label),
      computing_plan_(computing),
      replica_(computing_plan_, DeviceId{0}),
      transfers_({data_to_devices, gradients_label}) {}

Program ReplicatedDataParallel::forward(Rank& rank, const Batch& batch,
                                        const StepOptions& options) {
  // The host runs at most one step ahead of the device and of the exchange.
  co_await rank.settle(loss_ready_);
  if (exchange() != nullptr) {
    co_await exchange()->settle(rank);
  }
  transfers_.begin_forward(options.training);
  if (exchange() != nullptr && options.through_wrapper && options.enters_wrapper) {
    co_await before_forward(rank, options);
  }
  loss_ready_ = co_await forward_of(rank, replica_, batch, options);
  transfers_.add(data_to_devices, replica_.batch_bytes());
}

Program ReplicatedDataParallel::before_forward(Rank&, const StepOptions&) { co_return; }

Program ReplicatedDataParallel::backward(Rank& rank, const StepOptions& asked) {
  const StepOptions options = for_backward(asked);
  const int64_t last = replica_.forwards().last();
  const std::vector<BackwardPass> passes = replica_.forwards().take_passes(options);
  if (exchange() != nullptr) {
    exchange()->begin(rank, options.synchronise);
  }
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.forwards().turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      const Ticket done = replica_.backward(rank, layer);
      if (exchange() != nullptr && !replica_.adds_later(passes, pass, layer)) {
        exchange()->gradients_ready(rank, layer, done);
      }
    }
    replica_.forget_forward(rank);
  }
  replica_.forwards().return_to(last);
  if (exchange() != nullptr) {
    co_await exchange()->finish(rank);
    for (const Bytes bytes : exchange()->take_exchanged_bytes()) {
      transfers_.add(gradients_label_, bytes);
    }
  }
}

Program ReplicatedDataParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica_.zero_gradients(rank, optimizer, set_to_none);
  if (exchange() != nullptr) {
    exchange()->gradients_forgotten(rank);
  }
  co_return;
}

}  // namespace lockstep
