#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/strategy/strategy.hpp"
#include "model/trainer/interpreter.hpp"
#include "model/trainer/metric_exchange.hpp"
#include "model/trainer/training_program.hpp"

namespace lockstep {

enum class LogReduction : uint8_t { mean, sum, min, max };
Reduction reduction_of(LogReduction reduction);

/// One call of `self.log` for one key, its defaults decided.
struct LogCall {
  std::string key;
  LogReduction reduction = LogReduction::mean;
  bool on_step = false;
  bool on_epoch = false;
  std::string hook;  ///< that calls it
  bool rank_zero_only = false;
  bool sync = false;  ///< sync_dist, the strategy is distributed, and not rank_zero_only
  int64_t batch_size = 1;
  TensorPointer value;  ///< one element; read when it is needed; null for a metric object
  MetricObject* metric = nullptr;           ///< computed at the end of the epoch, then reset
  const StateSites* state_sites = nullptr;  ///< of its exchanges
  SiteId site{};
  SiteId epoch_site{};  ///< of the reductions at the end of the epoch
};

/// Which of on_step and on_epoch a hook has by default (Lightning's fx_validator.py).
struct LogDefaults {
  bool on_step = false;
  bool on_epoch = true;
};
LogDefaults log_defaults(std::string_view hook);

/// The values that one loop of one rank has logged (Lightning's _ResultCollection, result.py). What
/// is logged on_step with sync is reduced at once; what is logged on_epoch is gathered locally and
/// reduced at the end of the epoch, in the order in which this rank first logged the keys.
class LoggedResults {
 public:
  LoggedResults(Interpreter& interpreter, Strategy& strategy, const TrainingProgram& program)
      : interpreter_(interpreter),
        strategy_(strategy),
        program_(program),
        exchange_(interpreter, strategy) {}

  Program log(const LogCall& call);
  /// Reduces what is logged on_epoch and puts all values into the rank's metrics, unless this is
  /// the sanity check (its reductions happen, its values are dropped). Forgets the epoch.
  Program end_epoch(bool keep);
  /// The last values on_step, for whoever reads callback_metrics within the epoch.
  Program publish_steps();

 private:
  struct Logged {
    double value = 0;
    int64_t batch_size = 1;
    TensorPointer tensor;  ///< not read yet
  };
  struct Result {
    LogCall call;
    std::vector<Logged> unread;  ///< of the epoch
    double accumulated = 0;
    int64_t batch_sizes = 0;
    bool started = false;
    TensorPointer step_value;
    int64_t batches = 0;             ///< accumulated
    int64_t common_batch_sizes = 0;  ///< after the exchange
  };
  Result& result_of(const LogCall& call);
  Task<double> read(TensorPointer tensor, SiteId site);
  Program gather(Result& result);
  void accumulate(Result& result, double value, int64_t batch_size);
  Task<double> reduced(Result& result);
  Task<double> computed(Result& result);
  void remember(const Result& result, double value);
  double single_number(const Result& result, const Tensor& value) const;
  Task<double> synchronised(double value, DType dtype, Reduction reduction, SiteId site);
  std::string step_key(const Result& result) const;

  Interpreter& interpreter_;
  Strategy& strategy_;
  const TrainingProgram& program_;
  MetricExchange exchange_;
  std::vector<Result> results_;  ///< in the order of the first log
};

}  // namespace lockstep
