#include "model/strategy/single.hpp"

namespace lockstep {

namespace {
constexpr std::string_view update = "single: optimizer step";
}

Program SingleDevice::setup(Rank& rank) {
  replica_.allocate(rank);
  co_return;
}

Program SingleDevice::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the device.
  co_await rank.settle(loss_ready_);
  loss_ready_ = replica_.forward(rank, batch, options);
}

Program SingleDevice::backward(Rank& rank, const StepOptions& options) {
  replica_.backward_of_loss(rank, options);
  for (const size_t layer : replica_.layers_last_to_first()) {
    replica_.backward(rank, layer);
  }
  replica_.forget_forward(rank);
  co_return;
}

Program SingleDevice::optimizer_step(Rank& rank) {
  replica_.optimizer_step(rank, site_id(update), {});
  co_return;
}

Program SingleDevice::zero_gradients(Rank& rank, bool set_to_none) {
  replica_.zero_gradients(rank, set_to_none);
  co_return;
}

Program SingleDevice::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = {&part, 1};
  call.writes = {&whole, 1};
  call.memory_traffic = part.bytes() * 2;
  const Ticket copied = rank.compute(call, {compute_stream, {}, site});
  co_await rank.settle(copied);
}

StrategyEntry single_device() {
  return {"single",
          "SingleDeviceStrategy",
          true,
          {},
          {{std::string(update), "", 0, 0, "", "", {}, ""}},
          [](const TrainingPlan& plan, const StrategyArguments&) {
            return std::make_unique<SingleDevice>(plan);
          }};
}

}  // namespace lockstep
