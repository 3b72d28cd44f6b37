#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/trainer/loop/fit_checkpoints.hpp"
#include "model/trainer/loop/gradient_statements.hpp"
#include "model/trainer/loop/kept_lists.hpp"
#include "model/trainer/loop/log_statements.hpp"

namespace lockstep {

/// The statements of one rank that need a trainer, and the names that it defines.
class TrainerStatements final : public TrainerScope {
 public:
  /// `fit`, `validate`, `test` or `predict` of the script.
  using RunStage = std::function<Program(StatementKind stage)>;
  /// The parts of the trainer that statements call.
  struct Parts {
    Progress& progress;
    TrainerCollectives& collectives;
    const HookRunner& hooks;
    BatchRunner& batches;
    TrainedModel& model;
    FitCheckpoints& checkpoints;
    Schedulers& schedulers;
    LoggedResults* const& results;  ///< of the loop that runs, null where none does
  };
  /// All outlives the statements.
  TrainerStatements(const TrainingContext& context, const Parts& parts, RunStage run_stage);

  std::optional<Value> lookup(std::string_view name) override;
  Task<Flow> run(const Statement& statement, Frame& frame) override;
  Program refresh_callback_metrics() override;
  bool has_process_group() const override;
  Task<Slice> gather_rows(Slice part, std::vector<int64_t> shape, SiteId site) override;
  bool is_column(std::string_view name) const override;
  void list_grew(const std::string& name) override;
  void name_bound(const std::string& name) override { kept_lists_.bound(name); }
  void list_read(const std::string& name, SiteId site) override;
  std::optional<Value> parameter(std::string_view name) override {
    return parts_.model.parameter(name);
  }

  /// A pass over a loader begins: an epoch of training, or an evaluation within a fit or alone.
  void begin_epoch();
  void begin_evaluation(Stage stage, bool is_sanity_check);
  void end_evaluation();

 private:
  Task<Flow> run_other(const Statement& statement, Frame& frame);
  Task<Flow> run_metric(const Statement& statement, Frame& frame);
  void mark(const Statement& statement, bool begins);
  Program set_should_stop(const Statement& statement, Frame& frame);
  Program decide(const Statement& statement, Frame& frame);
  Task<Flow> with_whole_parameters(const Statement& statement, Frame& frame);
  void check_beside_whole_parameters(const Statement& statement);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  Parts parts_;
  RunStage run_stage_;
  MetricStatements metrics_;
  LogStatements logs_;
  GradientStatements gradients_;
  KeptLists kept_lists_;
  bool has_whole_parameters_ = false;  ///< inside of summon_full_params
};

}  // namespace lockstep
