#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/program/repetition.hpp"
#include "model/strategy/staleness.hpp"
#include "model/trainer/callback/callback.hpp"
#include "model/trainer/logging/logging.hpp"
#include "model/trainer/loop/progress.hpp"
#include "model/trainer/loop/update_tally.hpp"
#include "model/trainer/loop/weight_update.hpp"

namespace lockstep {

class Training;

/// What a period of a fit counts.
struct PeriodCounts {
  int64_t steps = 0;
  int64_t batches_that_stepped = 0;
  int64_t epochs = 0;
  int64_t batches = 0;  ///< of training
  int64_t logger_rows = 0;
  int64_t micro_batches = 0;
  /// WeightUpdate::batches of the first: from the beginning of the period.
  std::vector<WeightUpdate> updates;
  UpdateTally::SinceUpdate since_update;  ///< at its end; without updates: since its beginning
  std::vector<int64_t> by_callbacks;
  Staleness staleness{};
  std::vector<LoggerRow> rows;     ///< the last of them, from its beginning on
  LoggedResults::OfPeriod logged;  ///< by batches; an epoch reduces it itself

  bool operator==(const PeriodCounts&) const = default;
};

/// What the periods of a level count, which were run, by number; and what has been left out since.
class PeriodTally {
 public:
  /// `logs`: what is logged waits for the end of a pass.
  PeriodTally(Training& training, bool logs) : training_(training), logs_(logs) {}

  void begin(int64_t number);
  /// The period that began last has ended.
  void end();
  /// Counts what has been left out. `batch`: of the epoch, in which it begins.
  void leave_out(const std::vector<RepeatedPeriods>& repeats, int64_t batch);

 private:
  /// What a fit has counted until a moment.
  struct Counted {
    Progress progress;
    int64_t logger_rows = 0;
    int64_t listed_rows = 0;
    int64_t micro_batches = 0;
    UpdateTally::Logged updates;
    UpdateTally::SinceUpdate since_update;
    std::vector<int64_t> by_callbacks;
    Staleness staleness{};
  };
  Counted counted() const;
  PeriodCounts counts() const;  ///< since the last period began
  /// Entries up to `end`.
  void count(const std::vector<RepeatedPeriods>& repeats, size_t begin, size_t end);
  void count(const PeriodCounts& period, int64_t times);
  void add_rows(const PeriodCounts& period, int64_t times);
  void step_schedules(const PeriodCounts& period, int64_t times);
  void take_rates(CallbackHook hook);

  Training& training_;
  bool logs_;
  int64_t batch_ = 0;   ///< in which comes what is left out next
  int64_t number_ = 0;  ///< of the period that began last
  Counted begun_;
  std::vector<std::shared_ptr<const PeriodCounts>> periods_;  ///< by number; null: not counted
  std::shared_ptr<const PeriodCounts> last_;
  /// The last rows of rates, where schedulers change them, of what is being counted.
  std::deque<Callback::Rates> rates_;
};

/// The periods of the loops of a training: of which kinds they are, and what they count.
class TrainingPeriods {
 public:
  explicit TrainingPeriods(Training& training)
      : tallies_({PeriodTally(training, true), PeriodTally(training, false)}) {}

  /// Tells those of a loop, or of one pass, from those of all others.
  int64_t new_kind() { return ++loops_; }
  /// The kind of those that do this: equal descriptions are one kind.
  int64_t kind_of(std::vector<int64_t> does) {
    return kinds_.try_emplace(std::move(does), std::ssize(kinds_)).first->second;
  }
  /// Of batches or epochs.
  PeriodTally& tally(int32_t level) {
    return tallies_[static_cast<size_t>(level - period_level::batches)];
  }
  /// From here on ranks are not in the same period at the same time: no more are named.
  void end() { have_ended_ = true; }
  bool have_ended() const { return have_ended_; }

 private:
  int64_t loops_ = 0;
  bool have_ended_ = false;
  std::map<std::vector<int64_t>, int64_t> kinds_;
  std::array<PeriodTally, 2> tallies_;
};

}  // namespace lockstep
