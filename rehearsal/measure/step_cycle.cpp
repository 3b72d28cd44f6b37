#include "rehearsal/measure/step_cycle.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

Time lower_median(std::vector<Time> lengths) {
  const auto middle = lengths.begin() + (std::ssize(lengths) - 1) / 2;
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

}  // namespace

std::optional<Time> mean_of_cycle(const StepSequence& sequence, const SteadyStep& steady,
                                  const std::vector<int64_t>& samples, int64_t steps_of_cycle) {
  constexpr int64_t cycles_looked_at = 5;
  constexpr int64_t most_steps = int64_t{1} << 20;
  const int64_t behind_first = sequence.size() - 1;  // the first begins with the run
  const int64_t looked_at = std::min({most_steps, steps_of_cycle * cycles_looked_at, behind_first});
  if (looked_at < steps_of_cycle) {
    return std::nullopt;
  }
  std::vector<std::vector<Time>> lengths(static_cast<size_t>(steps_of_cycle));
  for (int64_t back = 0; back < looked_at; ++back) {
    const StepSequence::Step step = sequence.at(sequence.size() - 1 - back);
    if (samples.empty() || samples[step.mark] == samples[steady.mark]) {
      lengths[static_cast<size_t>(back % steps_of_cycle)].push_back(step.length);
    }
  }
  Time sum{};
  for (std::vector<Time>& of_place : lengths) {
    sum += of_place.empty() ? steady.end - steady.begin : lower_median(std::move(of_place));
  }
  return sum / steps_of_cycle;
}

}  // namespace lockstep::cli
