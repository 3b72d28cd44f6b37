#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategy/local_model/loss_scale.hpp"
#include "model/trainer/callback/callbacks.hpp"
#include "model/trainer/data/column_cache.hpp"
#include "model/trainer/logging/logging.hpp"
#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/kept_lists.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/training_program.hpp"
#include "model/trainer/scheduler/schedulers.hpp"
#include "model/user_program/metric_statements.hpp"

namespace lockstep {

struct BackwardPass;

/// The position of a loop, as the names of expressions see it.
struct Progress {
  int64_t global_step = 0;           ///< optimizer steps
  int64_t batches_that_stepped = 0;  ///< disregarding several optimizers: what loggers count
  int64_t epoch = 0;
  int64_t batches = 0;  ///< of training that began, over all epochs
  int64_t batch_idx = 0;
  int64_t batch_size = 0;
  int64_t num_batches = 0;
  int64_t dataloader_idx = 0;
  int64_t resumed_batch = 0;  ///< of the next epoch, at which it goes on
  bool is_last_batch = false;
  bool sanity_checking = false;
  bool should_stop = false;

  /// Counts `times` more of what has been counted since `earlier`.
  void repeat_since(const Progress& earlier, int64_t times) {
    global_step += (global_step - earlier.global_step) * times;
    batches_that_stepped += (batches_that_stepped - earlier.batches_that_stepped) * times;
    epoch += (epoch - earlier.epoch) * times;
    batches += (batches - earlier.batches) * times;
  }
};

/// What a fit has counted.
struct Counted {
  Progress progress;
  int64_t logger_rows = 0;
  int64_t micro_batches = 0;
  size_t updates = 0;         ///< rows of them
  int64_t times_of_last = 0;  ///< of the last of these
  std::vector<int64_t> by_callbacks;
  std::vector<size_t> logged;  ///< values by result, of the loop
  Staleness staleness{};
};

/// Lightning's Trainer on one rank: what loops share, and the statements that need a trainer.
class Training final : public TrainerScope {
 public:
  Training(Rank& rank, const TrainingProgram& program);

  /// The script, or on a server what the strategy does there.
  Program run_main();

  // TrainerScope.
  std::optional<Value> lookup(std::string_view name) override;
  Task<Flow> run(const Statement& statement, Frame& frame) override;
  Program refresh_callback_metrics() override;
  bool has_process_group() const override;
  Task<Slice> gather_rows(Slice part, std::vector<int64_t> shape, SiteId site) override;
  bool is_column(std::string_view name) const override;
  void list_grew(const std::string& name) override;
  void name_bound(const std::string& name) override { kept_lists_.bound(name); }
  void list_read(const std::string& name, SiteId site) override;
  std::optional<Value> parameter(std::string_view name) override;
  void tell_changing_weights(std::string_view name);

  // For the loops.
  Rank& rank() { return rank_; }
  const TrainingProgram& program() const { return program_; }
  Strategy& strategy() { return *strategy_; }
  Interpreter& interpreter() { return interpreter_; }
  RankLog& log() { return log_; }
  TrainerCollectives& collectives() { return collectives_; }
  Termination& termination() { return termination_; }
  HookRunner& hooks() { return hooks_; }
  OptimizerRates& rates() { return rates_; }
  const TrainerMembership& membership() const { return membership_; }
  bool distributed() const { return collectives_.distributed(); }
  /// Rows of the journal: how many batches a loop will run, and that it goes on to one more. Where
  /// ranks have unequal numbers, they say in which batch each rank was.
  void note_batches(const LoaderSettings& loader, int64_t count) const;
  bool goes_on(const LoaderSettings& loader, bool has_more) const;
  /// Reports to the world that the next training epoch, or a batch of the next step, begins.
  Program begin_epoch();
  /// A pass over a loader that is not of training, within a fit or alone.
  void begin_evaluation(Stage stage, bool is_sanity_check);
  void end_evaluation();
  /// All ranks have the model of one of them now (Strategy::join).
  void note_taken_over();
  /// The hooks around a batch's way to its device, where the user has them.
  Program transfer_batch();
  /// `trainer.save_checkpoint`: the strategy writes its files, and all meet in a barrier.
  /// `path_length`: characters of the file's name.
  Program save_checkpoint(SiteId site, bool weights_only, int64_t path_length,
                          const std::string& last = "");
  /// What the next attempt will find under this name: nothing is kept where nothing outlives the
  /// run.
  Program keep_checkpoint(std::string file, bool weights_only);
  /// Before the loop of a fit: loads the newest `last`, where the script asks for it.
  Program restore_checkpoint();
  /// Hooks, of which HookRunner says more.
  Task<Flow> hook(std::string_view name) { return hooks_.run(name); }
  Program hook_with_outputs(std::string_view name) {
    return hooks_.run_with_outputs(name, outputs);
  }
  Program hook_of_1_x(std::string_view name) { return hooks_.run_of_1_x(name); }
  /// Runs what precedes the loop of a stage: barriers, hooks, the strategy's setup.
  Program begin_stage(Stage stage);
  /// Runs what is between a stage's set-up and its loop: barriers, and the handlers of signals.
  Program begin_loop();
  /// Returns the sites of the current stage.
  const TrainerSites& sites() const;
  /// The strategy's teardown, and the hooks after it.
  Program end_stage();
  /// Makes the batch available to hooks and their columns until `leave_batch`. Both outlive that.
  void enter_batch(const Batch& batch, const LoaderSettings& loader);
  void leave_batch();
  /// One training batch, which has been entered: forward, backward, update, in the order of
  /// automatic optimization.
  Program training_batch(bool steps, bool begins_window);
  /// The zero_grad before a validation, where a fit runs; from 2.1 on the hook
  /// on_validation_model_zero_grad may take its place.
  Program release_gradients(bool by_hook);
  Program evaluation_batch(std::string_view step_hook);
  SamplerPolicy policy(LoaderRole role) const;
  /// Raises where the loader's sampler does.
  void check_sampler(const LoaderSettings& loader, LoaderRole role) const;
  /// Evaluates `batches` and `batch_size` of a loader, where they are expressions.
  Program count_batches(const LoaderSettings& loader, OwnBatches& own);

  Stage stage() const { return stage_; }
  Callbacks& callbacks() { return callbacks_; }
  Schedulers& schedulers() { return schedulers_; }
  /// Whether loggers get a row of the batch that runs (logger_connector.py, should_update_logs).
  bool should_update_logs() const;
  /// Gives the loggers a row, if there are values and loggers. Without `step`, that of the key
  /// `step`, else of training, and the epoch beside it.
  void log_row(std::map<std::string, double> values, std::optional<int64_t> step);
  Counted counted() const {
    const std::vector<WeightUpdate>& updates = log_.weight_updates;
    return {progress,
            log_.logger_row_count,
            micro_batches_,
            updates.size(),
            updates.empty() ? 0 : updates.back().times,
            callbacks_.counted(),
            results == nullptr ? std::vector<size_t>() : results->counted(),
            strategy_->staleness().value_or(Staleness{})};
  }
  /// Counts `times` more of what has been counted since `earlier`: the world has left it out.
  void repeat_since(const Counted& earlier, int64_t times);
  void repeat_updates_since(const Counted& earlier, int64_t times);
  /// Adds what is kept from one batch to the next beside what is counted.
  void remember(ProgramMemory& memory) const;
  bool has_validation() const;
  /// Some validation of this fit, beyond the sanity check, has come to its end.
  bool has_validated() const { return has_validated_; }
  void note_validation() { has_validated_ = true; }
  /// Puts what the fit has logged on_step into callback_metrics, where something may monitor it.
  Program publish_step_metrics();

  Progress progress;
  FitPosition resumes_at;                      ///< a fit that reads a checkpoint of this moment
  const RankBatches* epoch_batches = nullptr;  ///< of the training epoch that runs
  int64_t epoch_batches_used = 0;              ///< of these
  LoggedResults* results = nullptr;            ///< of the loop that runs now
  std::set<std::string> checkpoint_files;      ///< on the disk, as rank 0 sees it
  Variable::List outputs;                      ///< of the epoch, for the epoch-end hooks of 1.x
  /// should_stop counts: min_epochs and min_steps have been reached.
  bool can_stop_early() const;

 private:
  /// `main`, or `fit` where the scenario has none.
  Program run_script();
  void bind_buffers();
  void log_parameters();
  /// `fit`, `validate`, `test` or `predict` of the script.
  Program run_trainer(StatementKind kind);
  std::vector<TrainedSamples> trained_samples() const;
  bool holds_forward(std::string_view hook) const;
  void check_may_skip(const Hook* training_step) const;
  /// The closure that automatic optimization passes to the optimizer's step.
  struct Closure {
    bool begins_window = false;  ///< of accumulation
    bool has_run = false;
    bool has_loss = true;  ///< training_step has returned one, or has called backward itself
  };
  struct Clipping {
    GradientClipping how{};
    SiteId site{};  ///< of the statement that asks for it
  };
  Program optimize(bool steps);
  Program run_closure();
  /// A step hook of the user; forward is put first where it has none.
  Task<Flow> step(std::string_view hook, Frame& frame);
  Program forward(const Statement* statement, Frame& frame);
  /// Runs backward from `start`: a multiple of the loss, or what the program made of the output.
  Program backward(BackwardStart start, SiteId site);
  bool keeps_graphs() const;
  ForwardResults results_of_forwards() const;
  void keep_last_forward(const Statement* statement, Frame& frame);
  void drop_unreachable_forwards();
  void drop_forwards();
  std::vector<BackwardPass> passes_of(const BackwardStart& start) const;
  Program backward_of(const Statement& statement, Frame& frame);
  /// d(what the step hook returns) / d(the loss of its forward, or its output).
  Task<BackwardStart> start_of_returned(std::string_view hook, const Frame& frame);
  Program step_of(const Statement& statement);
  Program closure_of(const Statement& statement);
  /// Updates what the optimizer holds; `site`: of the statement that asks for it.
  Program update(size_t optimizer, SiteId site);
  /// What is done to the gradients of the step that begins.
  Clipping clipping_of_step(size_t optimizer);
  std::vector<KnownDifference> known_differences();
  /// The trainer's or the strategy's; null: losses are not scaled.
  const LossScale* loss_scale() const {
    return loss_scale_ ? &*loss_scale_ : strategy_->loss_scale();
  }
  void note_update();
  bool has_gradients_to_compute(const StepOptions& options);
  void note_gradients();
  std::string optimizer_name(size_t optimizer) const;
  void count_step();
  Program clip(const Statement& statement, Frame& frame);
  Program step_scheduler(const Statement& statement, Frame& frame);
  StepOptions step_options() const;
  size_t optimizer_of(const Statement& statement) const;
  Program bind_output(const Statement* statement, Frame& frame);
  Program zero_grad_by_hook();
  Program zero_grad(size_t optimizer, bool set_to_none);
  TensorPointer loss_tensor();
  TensorPointer copied(const Slice& from, std::vector<int64_t> shape);
  Program log_statement(const Statement& statement, Frame& frame);
  Program log_value(const Statement& statement, const std::string& name,
                    const Expression& expression, Frame& frame);
  Program log_metric(const Statement& statement, const std::string& name, MetricInstance* metric);
  void mark(const Statement& statement, bool begins);
  Program set_should_stop(const Statement& statement, Frame& frame);
  Program decide(const Statement& statement, Frame& frame);
  Task<Flow> without_sync(const Statement& statement, Frame& frame, bool without);
  Program switch_gradient_sync(const Statement& statement, Frame& frame);
  /// The hook under way runs in the forward of the strategy's wrapper.
  bool is_in_wrapper_forward() const;
  Task<Flow> with_whole_parameters(const Statement& statement, Frame& frame);
  void check_beside_whole_parameters(const Statement& statement);
  Task<Flow> run_training(const Statement& statement, Frame& frame);
  LogCall log_call(const Statement& statement, const std::string& name) const;
  Program note_factor(std::string_view hook, const Frame& names);
  Task<Flow> step_on_copies(std::string_view hook, Frame& frame, bool once);
  Variable gathered(const Variable::List& returned);
  /// The hook of 1.x behind a step, with what it gives.
  Program end_step(std::string_view hook, Frame& frame);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  TrainerMembership membership_;
  std::unique_ptr<Strategy> strategy_;
  Interpreter interpreter_;
  TrainerCollectives collectives_;
  Termination termination_;
  HookRunner hooks_;
  OptimizerRates rates_;
  MetricStatements metrics_;
  KeptLists kept_lists_;
  ColumnCache columns_;
  Callbacks callbacks_;
  Schedulers schedulers_;
  bool has_validated_ = false;
  bool is_set_up_ = false;        ///< the model exists
  std::string asked_checkpoint_;  ///< `ckpt_path` of the fit that runs
  int64_t checkpoints_kept_ = 0;
  Stage stage_ = Stage::fit;
  const Batch* batch_ = nullptr;        ///< of the copy whose step runs
  const Batch* whole_batch_ = nullptr;  ///< of all copies
  size_t part_ = 0;                     ///< the copy whose step runs
  bool forwarded_ = false;              ///< all copies, in this step
  int64_t samples_since_update_ = 0;    ///< of training batches
  int64_t batches_since_update_ = 0;    ///< of the training
  bool forward_since_update_ = true;    ///< of any stage
  const LoaderSettings* loader_ = nullptr;
  bool forward_done_ = false;      ///< in this batch
  bool graph_is_gone_ = false;     ///< of the last forward: a backward has used it up
  bool entered_wrapper_ = false;   ///< in this batch
  std::optional<size_t> toggled_;  ///< the optimizer of the toggle_model around
  bool training_ = false;          ///< gradients will be asked for
  bool synchronise_ = true;
  bool requires_gradient_sync_ = true;  ///< what set_requires_gradient_sync has set
  bool has_whole_parameters_ = false;   ///< inside of summon_full_params
  bool engine_steps_ = true;            ///< in this batch; Lightning may count otherwise
  Staleness staleness_left_out_{};      ///< of what the world has left out
  int64_t micro_batches_ = 0;           ///< of the training, where the strategy accumulates
  double loss_factor_ = 1;
  std::optional<LossScale> loss_scale_;   ///< of the precision plugin, under 16-mixed
  std::optional<Closure> closure_;        ///< of the batch that runs
  std::map<size_t, Clipping> clippings_;  ///< of the next step, by optimizer
  std::set<size_t> has_gradients_;        ///< optimizers whose gradients are not None or 0
  GradientPointer loss_gradient_;         ///< of the last forward
  GradientPointer output_gradient_;       ///< of the same
  /// Earlier forwards of this batch that something still depends on.
  struct KeptForward {
    int64_t number = 0;
    std::weak_ptr<const GradientNode> loss{};
    std::weak_ptr<const GradientNode> output{};
  };
  std::vector<KeptForward> kept_forwards_;
  int64_t forward_number_ = 0;                ///< of the last
  std::string output_name_ = "output";        ///< to which the last has bound its output
  std::optional<double> factor_of_copies_{};  ///< what the hooks of all copies have returned
};

}  // namespace lockstep
