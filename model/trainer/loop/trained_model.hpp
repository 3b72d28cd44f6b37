#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/strategy/local_model/loss_scale.hpp"
#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/training_context.hpp"

namespace lockstep {

/// The model of one rank as its statements see it, its buffers and parameters, and what is kept of
/// it when the program ends.
class TrainedModel {
 public:
  /// All outlive it.
  TrainedModel(const TrainingContext& context, const HookRunner& hooks);

  /// The strategy has set the model up.
  void begin();
  bool is_set_up() const { return is_set_up_; }
  /// The value of a parameter, by its name in the module. Nothing where there is none of that name.
  /// Throws OperationError where this rank does not hold it, or it carries no values.
  std::optional<Value> parameter(std::string_view name);
  /// The hook under way runs in the forward of the strategy's wrapper.
  bool is_in_wrapper_forward() const;

  /// What is known to differ from one device, where the world has run so many micro-batches and
  /// steps. `own`: the loss scale of the precision plugin.
  std::vector<KnownDifference> known_differences(const std::optional<LossScale>& own,
                                                 int64_t micro_batches, int64_t steps);
  /// The world has left out batches that would have been as stale.
  void leave_out(const Staleness& staleness) { staleness_left_out_.merge(staleness); }
  /// What the strategy tells of the training at its end, and the final parameters.
  void log_strategy();
  void log_parameters(bool runs_trainer);

 private:
  void bind_buffers();
  void tell_changing_weights(std::string_view name);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  const HookRunner& hooks_;
  bool is_set_up_ = false;
  Staleness staleness_left_out_{};
};

}  // namespace lockstep
