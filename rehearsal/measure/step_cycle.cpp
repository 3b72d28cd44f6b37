#include "rehearsal/measure/step_cycle.hpp"

#include <algorithm>

#include "rehearsal/measure/steady_step.hpp"

namespace lockstep::cli {

namespace {

/// Walks a journal's steps backwards, through what was left out.
class BackwardSteps {
 public:
  BackwardSteps(std::span<const RepeatedRows> repeated, const std::vector<StepMark>& steps,
                size_t most)
      : repeated_(repeated), steps_(steps), most_(most) {}

  std::vector<size_t> all() {
    const int64_t rows = steps_.empty() ? 0 : steps_.back().rows.end;
    take(0, rows, 0, repeated_.size());
    return std::move(taken_);
  }

 private:
  // Steps that end in rows (begin, end], and what entries [first, last) say was repeated of them.
  void take(int64_t begin, int64_t end, size_t first, size_t last) {
    while (last > first && !is_full()) {
      const RepeatedRows& rows = repeated_[--last];
      if (rows.row > begin) {
        take_between(rows.row, end);
        end = std::min(end, rows.row);
      }
      const size_t taken_before = taken_.size();
      for (int64_t period = 0; period < rows.periods && !is_full(); ++period) {
        take(rows.begin, rows.end, static_cast<size_t>(rows.first_inner),
             static_cast<size_t>(rows.end_inner));
        if (taken_.size() == taken_before) {
          break;  // no step ends in it
        }
      }
    }
    take_between(begin, end);
  }

  void take_between(int64_t begin, int64_t end) {
    const auto after = std::ranges::upper_bound(steps_, end, {},
                                                [](const StepMark& step) { return step.rows.end; });
    for (auto step = after; step != steps_.begin() && !is_full();) {
      --step;
      if (step->rows.end <= begin) {
        return;
      }
      taken_.push_back(static_cast<size_t>(step - steps_.begin()));
    }
  }

  bool is_full() const { return taken_.size() >= most_; }

  std::span<const RepeatedRows> repeated_;
  const std::vector<StepMark>& steps_;
  size_t most_;
  std::vector<size_t> taken_;
};

Time lower_median(std::vector<Time> lengths) {
  const auto middle = lengths.begin() + (std::ssize(lengths) - 1) / 2;
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

}  // namespace

std::vector<size_t> steps_from_last(std::span<const RepeatedRows> repeated,
                                    const std::vector<StepMark>& steps, size_t most) {
  return BackwardSteps(repeated, steps, most).all();
}

std::optional<Time> mean_of_cycle(std::span<const RepeatedRows> repeated,
                                  const std::vector<StepMark>& steps,
                                  const std::vector<int64_t>& samples, int64_t steps_of_cycle) {
  constexpr int64_t cycles_looked_at = 5;
  constexpr int64_t most_steps = int64_t{1} << 20;
  const int64_t most = std::min(most_steps, steps_of_cycle * cycles_looked_at);
  std::vector<size_t> taken = steps_from_last(repeated, steps, static_cast<size_t>(most));
  std::erase(taken, size_t{0});  // its beginning is that of the run
  if (std::ssize(taken) < steps_of_cycle) {
    return std::nullopt;
  }
  const std::optional<SteadyStep> steady = steady_step(steps, repeated, samples);
  const bool counted = samples.size() == steps.size();
  std::vector<std::vector<Time>> lengths(static_cast<size_t>(steps_of_cycle));
  for (size_t at = 0; at < taken.size(); ++at) {
    const size_t step = taken[at];
    if (!counted || samples[step] == samples[steady->index]) {
      const Time left_out = steps[step].left_out - steps[step - 1].left_out;
      lengths[at % lengths.size()].push_back(steps[step].finish - steps[step - 1].finish -
                                             left_out);
    }
  }
  Time sum{};
  for (std::vector<Time>& of_place : lengths) {
    sum += of_place.empty() ? steady->end - steady->begin : lower_median(std::move(of_place));
  }
  return sum / steps_of_cycle;
}

}  // namespace lockstep::cli
