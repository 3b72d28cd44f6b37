#include "model/strategy/data_parallel/single.hpp"

#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/local_model/plain_backward.hpp"
#include "model/strategy/local_model/scaled_step.hpp"

namespace lockstep {

namespace {
constexpr std::string_view single_update = "single: optimizer step";
}

Program SingleDevice::setup(Rank& rank, Stage stage) {
  replica_.allocate(rank);
  if (stage == Stage::fit) {
    replica_.forget_optimizer(rank);
  }
  co_return;
}

Program SingleDevice::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the device.
  co_await rank.settle(loss_ready_);
  loss_ready_ = co_await forward_of(rank, replica_, batch, options);
}

Program SingleDevice::backward(Rank& rank, const StepOptions& options) {
  plain_backward(rank, replica_, options);
  co_return;
}

Program SingleDevice::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const std::optional<UpdateOptions> update = co_await scaled_step(rank, replica_, options);
  if (update) {
    replica_.optimizer_step(rank, *update, site_id(single_update));
  }
}

Program SingleDevice::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica_.zero_gradients(rank, optimizer, set_to_none);
  co_return;
}

StrategyEntry single_device() {
  return {"single_device",
          "SingleDeviceStrategy",
          {.layout = ProcessLayout::one_for_one_device,
           .loss_scaling = LossScaling::of_trainer,
           .holds_whole_state = true,
           .takes_tensor_norms = true},
          {{"device", "", "null", "the device; `accelerator` and `devices` of the Trainer name it",
            ArgumentUse::unmodelled, "null: that of `devices`"}},
          {{std::string(single_update), "", 0, 0, "", "", {}, ""}},
          [](const TrainingPlan& plan, const StrategyArguments&) {
            return std::make_unique<SingleDevice>(plan);
          }};
}

}  // namespace lockstep
