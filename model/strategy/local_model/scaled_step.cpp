#include "model/strategy/local_model/scaled_step.hpp"

#include <fmt/format.h>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

ScaledStep::ScaledStep(Rank& rank, LossScale& scale, const std::vector<Slice>& gradients,
                       DeviceId device, std::optional<GroupId> ranks, bool may_lack_gradients)
    : rank_(&rank), scale_(&scale), device_(device) {
  const SiteId site = site_id(replica_sites::unscale_gradients);
  if (!scale.has_scaled()) {
    throw ProgramException(site,
                           "AssertionError: Attempted unscale_ but _scale is None.  This may "
                           "indicate your script did not use scaler.scale(loss or outputs) earlier "
                           "in the iteration.");
  }
  if (gradients.empty() && !may_lack_gradients) {
    throw ProgramException(site,
                           "AssertionError: No inf checks were recorded for this optimizer. (None "
                           "of its parameters has a gradient.)");
  }
  check_.emplace(rank, device);
  check_->unscale(gradients, scale.factor());
  if (ranks) {
    check_->share(*ranks, Reduction::sum);
  }
}

// _amp_update_scale_ reads the flag alone, and is submitted before the optimizer's step here.
Task<bool> ScaledStep::may_step() {
  const std::optional<bool> found = co_await check_->found();
  moving(*rank_, {Slice::of_size(DType::fp32, 1)}, {},
         {stream(queue::compute, device_), {}, site_id(replica_sites::find_overflow)});
  co_return !note_step(*scale_, found);
}

namespace {

Task<std::optional<UpdateOptions>> scaled_step_of(Rank& rank, Replica& replica,
                                                  UpdateOptions options, const OwnedStep* owned) {
  if (options.loss_scale == nullptr) {
    co_return options;
  }
  ScaledStep scaled(rank, *options.loss_scale,
                    replica.update().gradients_of(options.optimizer, owned), replica.device(),
                    owned == nullptr ? std::nullopt : std::optional(world_group));
  replica.update().clip(rank, options, owned);
  options.clipping = {};
  const bool may_step = co_await scaled.may_step();
  if (!may_step) {
    co_return std::nullopt;
  }
  co_return options;
}

}  // namespace

Task<std::optional<UpdateOptions>> scaled_step(Rank& rank, Replica& replica,
                                               UpdateOptions options) {
  return scaled_step_of(rank, replica, options, nullptr);
}

Task<std::optional<UpdateOptions>> scaled_step_of_parts(Rank& rank, Replica& replica,
                                                        UpdateOptions options,
                                                        const OwnedStep& owned) {
  return scaled_step_of(rank, replica, options, &owned);
}

// Without values no overflow is assumed, and the scale stays.
bool note_step(LossScale& scale, std::optional<bool> found) {
  if (!found) {
    return false;
  }
  const bool skips = scale.skips(*found);
  scale.note_step(skips);
  return skips;
}

std::vector<KnownDifference> skipped_steps_of(const LossScale& scale, const std::string& remedy) {
  const size_t skipped = scale.skipped_steps().size();
  if (skipped == 0) {
    return {};
  }
  return {{fmt::format("{} optimizer step{} skipped, because gradients overflowed under the loss "
                       "scale, which is {} now",
                       skipped, skipped == 1 ? " was" : "s were", scale.scale()),
           remedy}};
}

}  // namespace lockstep
