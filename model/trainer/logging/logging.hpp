#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/strategy/strategy.hpp"
#include "model/trainer/logging/metric_exchange.hpp"
#include "model/trainer/loop/training_program.hpp"
#include "model/user_program/interpreter.hpp"

namespace lockstep {

enum class LogReduction : uint8_t { mean, sum, min, max };
std::string_view name_of(LogReduction reduction);
Reduction reduction_of(LogReduction reduction);

/// One call of `self.log` for one key, its defaults decided.
struct LogCall {
  std::string name;
  std::string loader_suffix;  ///< "/dataloader_idx_1", of several loaders
  LogReduction reduction = LogReduction::mean;
  bool on_step = false;
  bool on_epoch = false;
  std::string hook;  ///< that calls it
  bool rank_zero_only = false;
  bool to_logger = true;
  bool to_progress_bar = false;
  bool sync = false;  ///< sync_dist, the strategy is distributed, and not rank_zero_only
  int64_t batch_size = 1;
  TensorPointer value;  ///< one element; read when it is needed; null for a metric object
  MetricObject* metric = nullptr;           ///< computed at the end of the epoch, then reset
  const StateSites* state_sites = nullptr;  ///< of its exchanges
  SiteId site{};
  SiteId epoch_site{};  ///< of the reductions at the end of the epoch

  std::string key() const { return name + loader_suffix; }
  /// Suffixes of the two values of a call that is both on_step and on_epoch.
  std::string forked_key(std::string_view fork) const {
    return on_step && on_epoch ? name + std::string(fork) + loader_suffix : key();
  }
};

/// Rules of logging in a hook (Lightning's fx_validator.py), and its on_step and on_epoch by
/// default.
struct LogRules {
  bool may_log = true;
  bool only_on_epoch = false;
  bool on_step = false;
  bool on_epoch = true;
};
LogRules log_rules(std::string_view hook);

/// The values that one loop of one rank has logged (Lightning's _ResultCollection, result.py), by
/// hook, key and loader. What is logged on_step with sync is reduced at once; what is logged
/// on_epoch is gathered locally and reduced at the end of the epoch, in the order in which this
/// rank first logged the keys in any epoch of the loop.
class LoggedResults {
 public:
  static constexpr int64_t only_loader = -1;

  /// `training`: of the fit loop, whose values on_step are callback_metrics too.
  LoggedResults(Interpreter& interpreter, Strategy& strategy, const TrainingProgram& program,
                bool training)
      : interpreter_(interpreter),
        strategy_(strategy),
        program_(program),
        trainers_(program.membership(interpreter.rank().place()).trainers),
        exchange_(interpreter, strategy, trainers_),
        training_(training) {}

  Program log(const LogCall& call);
  /// A batch of the loader begins: of several, its number.
  void begin_batch(int64_t loader);
  /// From here on values of the epoch are asked for.
  void end_batches() { in_batches_ = false; }
  void leave_loaders() { loader_ = only_loader; }
  int64_t loader() const { return loader_; }
  /// Reduces what is logged on_epoch for the present loader and is not reduced yet. `keep`: puts
  /// the values into the rank's metrics.
  Program reduce_epoch(bool keep);
  /// Also reduces values on_step, then forgets the epoch. `keep` is false in the sanity check.
  Program end_epoch(bool keep);
  /// The last values on_step, for whoever reads callback_metrics within the epoch.
  Program publish_steps();
  /// Values that the last batch has logged on_step for the loggers, by key.
  Task<std::map<std::string, double>> values_for_loggers();
  /// Values reduced for the loggers since the last call, by key.
  std::map<std::string, double> take_epoch_values() { return std::exchange(for_loggers_, {}); }
  /// Reads what the last batch has logged for the progress bar, as Lightning does after each.
  Program show_progress();
  /// Adds what is logged and not read yet.
  void remember(ProgramMemory& memory) const;
  /// Known values that were logged on_epoch in a period, in their order.
  struct OfPeriod {
    struct Entry {
      size_t result = 0;
      double value = 0;
      int64_t batch_size = 1;
      bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> entries;
    bool operator==(const OfPeriod&) const = default;
  };
  void begin_period();
  /// Since it began.
  const OfPeriod& of_period() const { return of_period_; }
  /// Logs what so many periods would have that have been left out.
  void log_left_out(const OfPeriod& period, int64_t times);
  /// Models a read of `trainer.callback_metrics` at this point: within batches it shows values
  /// on_step, else it reduces those of the epoch.
  Program refresh();

 private:
  struct Logged {
    double value = 0;
    int64_t batch_size = 1;
    TensorPointer tensor{};  ///< not read yet; null: `value` is known
  };
  struct Result {
    LogCall call;
    int64_t loader = only_loader;
    bool in_use = true;                    ///< logged in this epoch
    bool is_reduced = false;               ///< since it was last logged
    std::vector<Logged> of_epoch;          ///< not accumulated yet, from one that is unread on
    std::map<StreamId, Ticket> follows{};  ///< operations that come before the known values
    double accumulated = 0;
    int64_t batch_sizes = 0;
    bool started = false;
    TensorPointer step_value;
    int64_t batches = 0;             ///< accumulated
    int64_t common_batch_sizes = 0;  ///< after the exchange
  };
  Result& result_of(const LogCall& call);
  Task<double> read(TensorPointer tensor, SiteId site);
  bool has_step_value(const Result& result) const;
  Task<double> step_value(size_t index);
  Program gather(Result& result);
  static double number_of(Interpreter& interpreter, const DeviceTensor& tensor, SiteId site);
  void accumulate(Result& result, const Logged& logged);
  void log_known(size_t index, double value, int64_t batch_size);
  Task<double> reduced(Result& result);
  Task<double> computed(Result& result);
  Program reduce_one(Result& result, bool keep);
  bool is_visible(const Result& result) const { return result.in_use && result.loader == loader_; }
  void remember(const Result& result, double value);
  double single_number(const Result& result, const Value& value) const;
  Task<double> synchronised(double value, DType dtype, Reduction reduction, SiteId site);

  Interpreter& interpreter_;
  Strategy& strategy_;
  const TrainingProgram& program_;
  int32_t trainers_;
  MetricExchange exchange_;
  bool training_;
  int64_t loader_ = only_loader;
  bool in_batches_ = false;
  bool counts_periods_ = false;
  OfPeriod of_period_;
  std::map<std::string, double> for_loggers_;
  std::vector<Result> results_;  ///< in the order of the first log
};

}  // namespace lockstep
