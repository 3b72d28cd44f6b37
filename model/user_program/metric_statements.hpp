#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/strategy/stage.hpp"
#include "model/trainer/logging/metric_exchange.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// The metric objects of one rank, and the statements that use them: `update`, `compute`, `reset`.
class MetricStatements {
 public:
  /// All outlive the statements.
  MetricStatements(Interpreter& interpreter, Strategy& strategy, const TrainingProgram& program);

  Program run(const Statement& statement, Frame& frame);
  /// The metric that this expression names, or null. A name bound in the hook comes first.
  MetricInstance* named(const Expression& expression, Frame& frame);
  MetricInstance* find(const std::string& written);

  /// A pass over data begins: an epoch of training, or an evaluation, whose end restores the
  /// pass before it.
  void begin_pass(Stage stage);
  void end_evaluation() { stage_ = Stage::fit; }

 private:
  Program update(const Statement& statement, Frame& frame, MetricInstance* metric);
  Program compute(const Statement& statement, Frame& frame, MetricInstance* metric);
  Program update_with(const Statement& statement, Frame& frame, MetricInstance& metric,
                      const MetricInputs& inputs);
  void check_devices(const Statement& statement, Frame& frame, MetricInstance& metric);
  void check_scale(const Statement& statement, const MetricInstance& metric,
                   const Tensor& predictions);
  void note_update(const Statement& statement, const MetricInstance& metric);
  void check_reset(const Statement& statement, const MetricInstance& metric);
  bool is_elsewhere(const Given<Expression>& given, Frame& frame);
  Task<Tensor> input(const Given<Expression>* given, const Expression* otherwise, Frame* frame,
                     SiteId site);
  void bind(const Statement& statement, Frame& frame, const MetricDefinition& definition,
            const std::vector<Value>& values);
  [[noreturn]] void fail(SiteId site, const MetricDefinition& metric, const OperationError& error);

  Interpreter& interpreter_;
  const TrainingProgram& program_;
  MetricExchange exchange_;
  std::map<std::string, std::unique_ptr<MetricInstance>, std::less<>> metrics_;
  /// Whether a metric has had batches of probabilities, and of logits.
  struct Scales {
    bool probabilities = false;
    bool logits = false;
    bool told = false;
  };
  std::map<const MetricInstance*, Scales> scales_;  ///< looked up only, never walked
  /// The first pass that a state counts.
  struct Pass {
    Stage stage = Stage::fit;
    int64_t number = 0;
    bool told = false;
  };
  Stage stage_ = Stage::fit;
  std::map<Stage, int64_t> passes_;
  std::map<const MetricInstance*, Pass> oldest_;  ///< looked up only
};

}  // namespace lockstep
