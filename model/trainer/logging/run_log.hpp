#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/failure.hpp"
#include "model/core/site.hpp"
#include "model/core/values.hpp"
#include "model/program/by_rank.hpp"
#include "model/strategy/compiled_graph.hpp"
#include "model/strategy/known_difference.hpp"
#include "model/strategy/local_model/expert_load.hpp"
#include "model/strategy/missing_loss.hpp"
#include "model/strategy/staleness.hpp"
#include "model/strategy/transfers.hpp"
#include "model/strategy/written_bytes.hpp"
#include "model/trainer/callback/callback_log.hpp"
#include "model/trainer/data/used_samples.hpp"
#include "model/trainer/loop/weight_update.hpp"

namespace lockstep {

/// A finding of a statement on one rank. Repetitions at the same place are kept once and counted.
struct StatementFinding {
  /// "LS201"; "assert", "evaluation", "unbound" (a name) and "unsupported" have no code of ours.
  std::string code;
  SiteId site{};
  std::string message;
  std::string remedy;  ///< may be empty
  int64_t times = 1;
  std::string list{};  ///< the name of a list that nothing has emptied; empty: it is about none
};

/// The samples that one pass over a data loader gave to a rank.
struct SampleUse {
  std::string stage;  ///< "train", "sanity", "validate", "test", "predict"
  int64_t epoch = 0;
  int64_t dataloader = 0;
  UsedSamples samples;
};

/// How a key was logged in the last epoch that has it, and what the value was made of.
struct LoggedKey {
  std::string key;
  SiteId site{};
  std::string hook;           ///< that logs it: "validation_step"
  bool is_object = false;     ///< a metric object, which synchronises itself
  bool synchronised = false;  ///< by sync_dist
  bool rank_zero_only = false;
  bool of_last_batch = false;      ///< logged on_step alone
  bool is_out_of_reach = false;    ///< sync_dist would raise: it is on the CPU, under NCCL
  std::string reduce_fx;           ///< "mean"; of a metric object empty
  double value = 0;                ///< what this rank shows
  double own = 0;                  ///< the same of this rank's batches alone
  int64_t batch_sizes = 0;         ///< their sum on this rank, for a mean
  int64_t common_batch_sizes = 0;  ///< what averaging that over the ranks gave, if synchronised
  int64_t batches = 0;             ///< values that were accumulated
};

/// The values that a rank gives its loggers at once. Only rank 0's loggers write them.
struct LoggerRow {
  int64_t step = 0;  ///< batches that stepped; of evaluation batches, their number
  std::map<std::string, double> values;  ///< by key, `epoch` among them where Lightning adds it
  bool counts_training = false;          ///< `step` and `epoch` are those of the training
  bool is_of_rates = false;              ///< a LearningRateMonitor's; `step` is of the training

  bool operator==(const LoggerRow&) const = default;
};

/// The learning rates of all optimizers in a step whose row the loggers get.
struct RatesOfRow {
  int64_t step = 0;  ///< batches that stepped before it
  std::vector<double> rates;

  bool operator==(const RatesOfRow&) const = default;
};

/// What a rank's loggers got.
struct LoggerLog {
  std::deque<LoggerRow> rows;  ///< the last of them
  int64_t row_count = 0;       ///< of all
  size_t rows_before_gap = 0;  ///< so many of `rows`; some behind these are not listed
  /// Of rank 0, where schedulers step within epochs; by step.
  std::vector<RatesOfRow> rates;
};

/// Which elements of a parameter a final value holds.
struct FinalPart {
  size_t parameter = 0;  ///< in definition order
  int64_t first_element = 0;
  bool operator==(const FinalPart&) const = default;
};

/// What a fit found that was asked to continue from a checkpoint.
struct Resumption {
  std::string file;         ///< that it read; empty: there was none, and it began anew
  int64_t global_step = 0;  ///< at which it continued
  int64_t epoch = 0;
  int64_t batch = 0;  ///< of that epoch
};

/// A tensor that meets those of other ranks by its name.
struct HandedOver {
  int64_t times = 0;
  SiteId site{};  ///< of the last statement that did it
};

/// The records of one rank beside its journal.
struct RankLog {
  static constexpr size_t logger_rows_max = 256;
  static constexpr size_t weight_updates_max = 4096;

  std::map<std::string, double> metrics;  ///< by key, what was logged last (callback_metrics)
  std::vector<LoggedKey> logged;  ///< the last epoch of each key, in the order of the first log
  LoggerLog logger;
  std::map<std::string, double> progress_bar;  ///< what was logged with prog_bar, by key
  std::vector<StatementFinding> findings;
  /// What statements have handed over to Horovod, by the names that it has there.
  std::map<std::string, HandedOver> handed_over;
  std::vector<SampleUse> samples;
  /// One entry for each series of optimizer steps without a forward between them: the number of
  /// training samples since the series before. Of a rank that has no data left also one for each
  /// step of others that it mirrors: mirrored_step.
  std::vector<int64_t> samples_of_steps;
  static constexpr int64_t mirrored_step = -1;
  std::vector<MonitorLog> monitors;        ///< callbacks and schedulers that monitor, as made
  std::vector<CheckpointLog> checkpoints;  ///< one a ModelCheckpoint
  /// That this rank wrote into the last checkpoint; none: there was none.
  std::optional<WrittenBytes> checkpoint_bytes;
  std::optional<int64_t> stopped_epoch;  ///< in which EarlyStopping stopped the training
  /// With schedulers, of each optimizer: at the start of each epoch, and at the end.
  std::vector<std::vector<double>> learning_rates;
  /// Transfers of the strategy in the last optimizer step, by its labels.
  std::vector<Transfer> transfers;
  std::vector<Values>
      final_parameters;  ///< in definition order; empty where models are too large for it
  /// What each of them is a part of; empty: whole parameters.
  std::vector<FinalPart> final_parts;
  std::vector<ExpertLoad> expert_loads;       ///< of mixtures of experts whose values are computed
  bool holds_parts = false;                   ///< shards, between steps; known without values, too
  std::vector<Slice> final_parameter_places;  ///< where they are; of this process alone
  std::vector<KnownDifference> known_differences;  ///< from one device
  std::optional<MissingLoss> missing_loss{};       ///< none: this rank has the loss of its batches
  std::vector<int64_t> skipped_steps;  ///< of a GradScaler, by an overflow; counted from 0
  /// The largest difference between a number that it compressed and what others read of it.
  std::optional<double> compression_error;
  std::vector<CompiledGraph> compiled_graphs{};  ///< by XLA, in the order of first use
  bool runs_trainer = true;                      ///< false: a server
  std::optional<Staleness> staleness;            ///< of the gradients that a server received
  std::vector<WeightUpdate> weight_updates;      ///< in order; the first of them, of many
  bool weight_updates_cut = false;               ///< there have been more; of this run alone
  int64_t steps = 0;                             ///< optimizer steps
  int64_t steps_of_cycle = 1;                    ///< Strategy::steps_of_cycle, of the last fit
  int64_t epochs = 0;                            ///< training epochs that ended
  std::set<std::string> hooks;                   ///< of the program, that ran
  bool found_no_batches = false;                 ///< a fit ended at once, as its loader has none
  int64_t statements = 0;                        ///< executed
  std::optional<Resumption> resumption{};        ///< of a fit; none: it was not asked for
  bool statement_limit_reached = false;

  void remember(const LoggedKey& logged_key) {
    for (LoggedKey& known : logged) {
      if (known.key == logged_key.key) {
        known = logged_key;
        return;
      }
    }
    logged.push_back(logged_key);
  }

  void add(const WeightUpdate& update) {
    const bool again = !weight_updates.empty() && weight_updates.back().does_as(update) &&
                       weight_updates.back().site == update.site &&
                       weight_updates.back().batches == update.batches;
    if (weight_updates_cut) {
      return;
    }
    if (again) {
      weight_updates.back().times += update.times;
    } else if (weight_updates.size() < weight_updates_max) {
      weight_updates.push_back(update);
    } else {
      weight_updates_cut = true;
    }
  }

  void add(const StatementFinding& finding) {
    for (StatementFinding& known : findings) {
      if (known.code == finding.code && known.site == finding.site) {
        ++known.times;
        return;
      }
    }
    findings.push_back(finding);
  }
};

/// One entry per rank. A rank writes only its own, so ranks may be threads.
struct RunLog {
  /// `classes`: of ranks that share an entry, which one of them writes; null: each has its own.
  explicit RunLog(int32_t world_size, std::shared_ptr<const RankClasses> classes = nullptr)
      : ranks(static_cast<size_t>(world_size), std::move(classes)) {}
  ByRank<RankLog> ranks;
};

/// Leaves the program as Python's SystemExit does: no `except` of the user's catches it.
class ProgramExit final : public ProgramException {
 public:
  using ProgramException::ProgramException;
};

/// A rank has executed more statements than allowed: most likely a loop that never ends.
class StatementLimit : public std::runtime_error {
 public:
  explicit StatementLimit(int64_t limit)
      : std::runtime_error("more than " + std::to_string(limit) +
                           " statements were executed: an endless loop?") {}
};

/// Whoever runs the program has asked it to end.
class StopAsked : public std::runtime_error {
 public:
  StopAsked() : std::runtime_error("the run was asked to end") {}
};

}  // namespace lockstep
