#include "rehearsal/measure/step_cycle.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::cli {

namespace {

using TakenStep = std::pair<Time, int64_t>;  ///< its length, and its number

int64_t of_median_length(std::vector<TakenStep> taken) {
  const auto middle = taken.begin() + (std::ssize(taken) - 1) / 2;
  std::nth_element(taken.begin(), middle, taken.end());
  return middle->second;
}

}  // namespace

std::vector<int64_t> steps_of_one_cycle(const StepSequence& sequence, const SteadyStep& steady,
                                        const std::vector<int64_t>& samples,
                                        int64_t steps_of_cycle) {
  constexpr int64_t cycles_looked_at = 5;
  constexpr int64_t most_steps = int64_t{1} << 20;
  const int64_t behind_first = sequence.size() - 1;  // the first begins with the run
  const int64_t looked_at = std::min({most_steps, steps_of_cycle * cycles_looked_at, behind_first});
  if (looked_at < steps_of_cycle) {
    return {};
  }
  std::vector<std::vector<TakenStep>> taken(static_cast<size_t>(steps_of_cycle));
  for (int64_t back = 0; back < looked_at; ++back) {
    const int64_t number = sequence.size() - 1 - back;
    const StepSequence::Step step = sequence.at(number);
    if (samples.empty() || samples[step.mark] == samples[steady.mark]) {
      taken[static_cast<size_t>(back % steps_of_cycle)].emplace_back(step.length, number);
    }
  }
  std::vector<int64_t> numbers;
  for (std::vector<TakenStep>& of_place : taken) {
    numbers.push_back(of_place.empty() ? steady.number : of_median_length(std::move(of_place)));
  }
  return numbers;
}

std::optional<Time> mean_of_cycle(const StepSequence& sequence, const SteadyStep& steady,
                                  const std::vector<int64_t>& samples, int64_t of_cycle) {
  const std::vector<int64_t> numbers = steps_of_one_cycle(sequence, steady, samples, of_cycle);
  Time sum{};
  for (const int64_t number : numbers) {
    sum += number == steady.number ? steady.end - steady.begin : sequence.at(number).length;
  }
  return numbers.empty() ? std::nullopt : std::optional(sum / of_cycle);
}

}  // namespace lockstep::cli
