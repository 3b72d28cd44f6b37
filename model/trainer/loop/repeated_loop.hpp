#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// Whether what the kinds of batches tell is the same in every pass.
bool passes_are_alike(const TrainingProgram& program);

/// Whether ranks take as many batches of a loader in each pass, so that they are always in the same
/// one.
bool batches_in_step(const LoaderSettings& loader);

/// The most optimizer steps that a period of so many begins: how many a batch has is the program's
/// where it takes them itself.
int64_t steps_most(const TrainerSettings& settings, int64_t steps);

/// Of ranks whose decisions a rank tells the world: its own, and where ranks decide apart, which
/// rank 0 alone can tell, those of all.
std::vector<Place> places_that_decide(Training& training);

/// How many windows of batches come before the next one of a step that is kept, or of a neighbour
/// of these: what a step does on other streams may reach into the next. TrainerSettings::no_limit:
/// none comes.
int64_t windows_before_kept(const Training& training);

/// Whether steps are kept before and behind the present position, between two steps.
bool is_between_kept(const TrainingProgram& program, const Progress& progress);

/// The passes of a loop of a fit, as one level of periods of the world.
class RepeatedLoop {
 public:
  struct Period {
    int64_t passes = 1;
    int64_t steps_most = 0;  ///< optimizer steps that it begins
    int64_t epochs = 0;      ///< that it takes
    bool mirrors = false;    ///< steps of other ranks
  };
  RepeatedLoop(Training& training, int32_t level, const Period& period)
      : training_(training), level_(level), period_(period) {}

  /// Said before each pass: `was_alike`: the period before is of a known kind, as those up to
  /// `until` are. Gives how many passes the world has left out, which are counted; the loop goes on
  /// behind them. `kind`: PeriodStart::kind.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until, int64_t kind);
  /// The same of periods of several kinds.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until, const PeriodKinds& kinds);
  int64_t length() const { return period_.passes; }
  /// Ranks decide by counters of which the kinds do not tell, as those are rank 0's: where it was
  /// not alike, what was known is forgotten.
  void forget_where_not_alike() { forgets_ = true; }

 private:
  int64_t leave_out(int64_t pass, PeriodStart start);
  int64_t reaches_back() const;

  Training& training_;
  int32_t level_;
  Period period_;
  bool forgets_ = false;
  std::optional<int64_t> last_;  ///< the pass that began a period last
};

}  // namespace lockstep
