#pragma once

#include <string>

#include "model/trainer/logging/logging.hpp"
#include "model/trainer/loop/batch_under_way.hpp"
#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/training_context.hpp"
#include "model/user_program/metric_statements.hpp"

namespace lockstep {

/// `self.log` and `self.log_dict` of one rank.
class LogStatements {
 public:
  /// All outlive the statements. `results`: of the loop that runs, null where none does.
  LogStatements(const TrainingContext& context, const TrainerCollectives& collectives,
                const HookRunner& hooks, const BatchUnderWay& batch, MetricStatements& metrics,
                LoggedResults* const& results);

  Program run(const Statement& statement, Frame& frame);

 private:
  Program log_value(const Statement& statement, const std::string& name,
                    const Expression& expression, Frame& frame);
  Program log_metric(const Statement& statement, const std::string& name, MetricInstance* metric);
  LogCall log_call(const Statement& statement, const std::string& name) const;

  const TrainingProgram& program_;
  RankLog& log_;
  Interpreter& interpreter_;
  const TrainerCollectives& collectives_;
  const HookRunner& hooks_;
  const BatchUnderWay& batch_;
  MetricStatements& metrics_;
  LoggedResults* const& results_;
};

}  // namespace lockstep
