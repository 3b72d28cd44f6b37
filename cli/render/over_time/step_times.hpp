#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cli/render/over_time/moments.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// Every optimizer step of rank 0, also those that a simulation has left out: from 0 on.
class StepTimes {
 public:
  StepTimes(const OneRun& run, const std::vector<LeftOutStretch>& stretches,
            const std::vector<std::pair<Time, Time>>& evaluations);

  int64_t steps() const { return steps_; }
  /// The end of its optimizer. `step` is one of them, as below.
  Time finish(int64_t step) const;
  /// Of all ranks; nothing where the run counts none.
  std::optional<int64_t> samples(int64_t step) const;
  /// The end of the validation that follows it directly; nothing: none does.
  std::optional<Time> evaluation_end(int64_t step) const;
  /// Steps that had ended at this moment.
  int64_t ended_at(Time moment) const;

 private:
  /// Steps that follow one another: simulated ones, or those of one stretch that is left out.
  struct Segment {
    int64_t first = 0;
    int64_t count = 0;
    size_t simulated = 0;                     ///< the first of them, by its place
    const LeftOutStretch* stretch = nullptr;  ///< null: simulated
    int64_t of_period = 0;
    int64_t repeats = 0;  ///< the first step of the period that it repeats
  };
  /// A simulated step that is like it, and by how much later it comes.
  struct Source {
    size_t place = 0;
    Time later{};
  };

  void add_simulated(size_t from, size_t until);
  Source source_of(int64_t step) const;

  std::vector<StepMark> marks_;
  std::vector<int64_t> samples_;
  std::map<Time, Time> evaluation_ends_;  ///< by the end of the step before
  std::vector<LeftOutStretch> stretches_;
  std::vector<Segment> segments_;
  int64_t steps_ = 0;
};

}  // namespace lockstep::cli
