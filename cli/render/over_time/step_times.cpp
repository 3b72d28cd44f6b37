#include "cli/render/over_time/step_times.hpp"

#include <algorithm>

#include "rehearsal/measure/step_samples.hpp"

namespace lockstep::cli {

StepTimes::StepTimes(const OneRun& run, const std::vector<LeftOutStretch>& stretches,
                     const std::vector<std::pair<Time, Time>>& evaluations)
    : marks_(steps_of(*run.result.journal, 0)),
      samples_(samples_of_steps(*run.preparation.log, marks_.size())),
      evaluation_ends_(evaluations.begin(), evaluations.end()),
      stretches_(stretches) {
  const auto simulated_before = [&](int64_t row) {
    return static_cast<size_t>(
        std::ranges::partition_point(marks_,
                                     [row](const StepMark& mark) { return mark.rows.end <= row; }) -
        marks_.begin());
  };
  std::vector<int64_t> left_out = {0};  // steps, in as many stretches as come before
  const auto steps_before = [&](int64_t row, int64_t stretches_before) {
    return static_cast<int64_t>(simulated_before(row)) +
           left_out[static_cast<size_t>(stretches_before)];
  };
  size_t done = 0;
  for (const LeftOutStretch& stretch : stretches_) {
    const RepeatedRows& rows = stretch.rows;
    const size_t here = simulated_before(rows.row);
    add_simulated(done, here);
    done = std::max(done, here);
    const int64_t repeats = steps_before(rows.begin, rows.first_inner);
    const int64_t of_period = steps_before(rows.end, rows.end_inner) - repeats;
    const int64_t steps = of_period * rows.periods;
    left_out.push_back(left_out.back() + steps);
    if (of_period > 0) {
      segments_.push_back({steps_, steps, 0, &stretch, of_period, repeats});
      steps_ += steps;
    }
  }
  add_simulated(done, marks_.size());
}

void StepTimes::add_simulated(size_t from, size_t until) {
  if (from < until) {
    const auto count = static_cast<int64_t>(until - from);
    segments_.push_back({steps_, count, from});
    steps_ += count;
  }
}

StepTimes::Source StepTimes::source_of(int64_t step) const {
  Time later{};
  for (;;) {
    const Segment& segment =
        *std::prev(std::ranges::upper_bound(segments_, step, {}, &Segment::first));
    const int64_t into = step - segment.first;
    if (segment.stretch == nullptr) {
      return {segment.simulated + static_cast<size_t>(into), later};
    }
    const RepeatedRows& rows = segment.stretch->rows;
    later += rows.first + rows.period * (into / segment.of_period);
    step = segment.repeats + into % segment.of_period;
  }
}

Time StepTimes::finish(int64_t step) const {
  const Source source = source_of(step);
  return marks_[source.place].finish + source.later;
}

std::optional<int64_t> StepTimes::samples(int64_t step) const {
  const Source source = source_of(step);
  return source.place < samples_.size() ? std::optional(samples_[source.place]) : std::nullopt;
}

// Those in the midst of what was left out are not listed: they are as the ones that they repeat.
std::optional<Time> StepTimes::evaluation_end(int64_t step) const {
  const Source source = source_of(step);
  const Time simulated = marks_[source.place].finish;
  for (const Time later : {source.later, Time{}}) {
    if (const auto end = evaluation_ends_.find(simulated + later); end != evaluation_ends_.end()) {
      return end->second + source.later - later;
    }
  }
  return std::nullopt;
}

int64_t StepTimes::ended_at(Time moment) const {
  int64_t ended = 0;
  for (int64_t more = steps_; more > 0;) {  // by bisection: times ascend
    const int64_t half = more / 2;
    if (finish(ended + half) <= moment) {
      ended += half + 1;
      more -= half + 1;
    } else {
      more = half;
    }
  }
  return ended;
}

}  // namespace lockstep::cli
