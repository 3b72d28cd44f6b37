#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/known_difference.hpp"
#include "model/strategy/local_model/loss_scale.hpp"
#include "model/strategy/local_model/overflow_check.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// What GradScaler does around clipping and the optimizer's step.
class ScaledStep {
 public:
  /// `unscale_(optimizer)`. With `ranks`, which hold different parts of the gradients, all of these
  /// learn what one has found (ShardedGradScaler); that of torch takes a rank that has none.
  ScaledStep(Rank& rank, LossScale& scale, const std::vector<Slice>& gradients, DeviceId device,
             std::optional<GroupId> ranks, bool may_lack_gradients = false);

  /// `step(optimizer)` up to the optimizer's own, and `update()`. False: it must not step.
  Task<bool> may_step();

 private:
  Rank* rank_;
  LossScale* scale_;
  DeviceId device_;
  std::optional<OverflowCheck> check_;
};

/// What is left to do in a step of the replica's optimizer; nothing: it is skipped. Without a loss
/// scale that is `options`. Else gradients have been unscaled and clipped.
Task<std::optional<UpdateOptions>> scaled_step(Rank& rank, Replica& replica, UpdateOptions options);
/// The same of parts: ranks that own different parameters step, or skip, together (FairScale).
Task<std::optional<UpdateOptions>> scaled_step_of_parts(Rank& rank, Replica& replica,
                                                        UpdateOptions options,
                                                        const OwnedStep& owned);

/// Notes the step in the scale, where numbers carry values. True: it is skipped.
bool note_step(LossScale& scale, std::optional<bool> found);

/// That steps have been skipped; empty where none was.
std::vector<KnownDifference> skipped_steps_of(const LossScale& scale, const std::string& remedy);

}  // namespace lockstep
