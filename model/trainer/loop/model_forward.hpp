#pragma once

#include <vector>

#include "model/trainer/loop/batch_under_way.hpp"
#include "model/trainer/loop/forward_graphs.hpp"
#include "model/trainer/loop/step_switches.hpp"
#include "model/trainer/loop/training_context.hpp"
#include "model/trainer/loop/update_tally.hpp"

namespace lockstep {

/// The forwards of the batch under way on one rank, and the names that they bind: `loss` and the
/// output.
class ModelForward {
 public:
  /// What a forward reads and notes beside the model. All outlives the forwards.
  struct Surroundings {
    BatchUnderWay& batch;
    const StepSwitches& switches;
    ForwardGraphs& graphs;
    UpdateTally& tally;
  };
  ModelForward(const TrainingContext& context, const Surroundings& around);

  void begin_batch();
  void end_batch() { is_done_ = false; }
  /// A step hook begins, on all copies of the module.
  void begin_step() { has_run_ = false; }
  /// Whether there was one in this batch.
  bool is_done() const { return is_done_; }

  /// `statement`: null where a step hook has no forward of its own. Raises where there is no batch.
  Program run(const Statement* statement, Frame& frame);
  /// The loss of the last forward, and a copy of what a strategy holds, as tensors of statements.
  TensorPointer loss_tensor();
  TensorPointer copied(const Slice& from, std::vector<int64_t> shape);

 private:
  StepOptions options_of(const Statement* statement);
  void bind_loss(Frame& frame);
  void bind_output(const Statement* statement, Frame& frame);
  void check_output(const Statement* statement);
  TensorPointer output_tensor(const std::vector<int64_t>& shape);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  BatchUnderWay& batch_;
  const StepSwitches& switches_;
  ForwardGraphs& graphs_;
  UpdateTally& tally_;
  bool has_run_ = false;          ///< of all copies, in this step
  bool is_done_ = false;          ///< in this batch
  bool entered_wrapper_ = false;  ///< in this batch
};

}  // namespace lockstep
