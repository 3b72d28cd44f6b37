#include "rehearsal/measure/steady_step.hpp"

#include <algorithm>

#include "rehearsal/measure/step_lengths.hpp"

namespace lockstep::cli {

namespace {

/// All but the first, of those that took the most samples.
std::vector<size_t> like_steps(const std::vector<StepMark>& steps,
                               const std::vector<int64_t>& samples) {
  const bool counted = samples.size() == steps.size();
  const int64_t most = counted ? *std::max_element(samples.begin() + 1, samples.end()) : 0;
  std::vector<size_t> order;
  for (size_t step = 1; step < steps.size(); ++step) {
    if (!counted || samples[step] == most) {
      order.push_back(step);
    }
  }
  return order;
}

/// A step as it was taken so many times.
struct TakenStep {
  size_t step = 0;
  Time length{};
  int64_t times = 1;
};

/// By length.
std::vector<TakenStep> taken_steps(const std::vector<StepMark>& steps,
                                   const std::vector<size_t>& like) {
  std::vector<TakenStep> taken;
  for (const size_t step : like) {
    for (const auto& [length, times] : steps[step].lengths) {
      taken.push_back({step, length, times});
    }
    if (steps[step].lengths.empty()) {
      taken.push_back({step, steps[step].finish - steps[step - 1].finish});
    }
  }
  std::ranges::stable_sort(taken, {}, &TakenStep::length);
  return taken;
}

/// The lower one of the middle.
struct Median {
  Time length{};
  int64_t number = 0;  ///< among those that took as long, in the order in which they were taken
};

Median weighted_median(const std::vector<TakenStep>& by_length) {
  int64_t all = 0;
  for (const TakenStep& each : by_length) {
    all += each.times;
  }
  Median median{by_length.front().length, (all - 1) / 2};
  int64_t as_long = 0;  // among those before
  int64_t before = 0;
  for (const TakenStep& each : by_length) {
    if (each.length != median.length) {
      median.length = each.length;
      as_long = before;
    }
    before += each.times;
    if (median.number < before) {
      median.number -= as_long;
      break;
    }
  }
  return median;
}

size_t step_of_median(const std::vector<StepMark>& steps, std::span<const RepeatedRows> repeated,
                      const std::vector<size_t>& like, const Median& median) {
  return nth_step_of_length(repeated, steps, like, median.length, median.number);
}

}  // namespace

std::optional<size_t> counted_step(World world, const std::vector<StepMark>& steps,
                                   std::span<const RepeatedRows> repeated,
                                   const std::vector<int64_t>& samples) {
  if (steps.size() <= 1) {
    return steps.empty() ? std::nullopt : std::optional<size_t>(0);
  }
  const std::vector<size_t> like = like_steps(steps, samples);
  if (is_real(world)) {
    return like[(like.size() - 1) / 2];
  }
  return step_of_median(steps, repeated, like, weighted_median(taken_steps(steps, like)));
}

std::optional<SteadyStep> steady_step(const std::vector<StepMark>& steps,
                                      std::span<const RepeatedRows> repeated,
                                      const std::vector<int64_t>& samples) {
  if (steps.empty()) {
    return std::nullopt;
  }
  if (steps.size() == 1) {
    return SteadyStep{{}, steps[0].finish, steps[0].rows, false, 0};
  }
  const std::vector<size_t> like = like_steps(steps, samples);
  const Median median = weighted_median(taken_steps(steps, like));
  const auto is_whole = [&](size_t step) {
    return steps[step].finish - steps[step - 1].finish == median.length;
  };
  size_t found = step_of_median(steps, repeated, like, median);
  if (!is_whole(found)) {  // what began before it is far away; another shows the same
    const auto whole = std::ranges::find_if(like, is_whole);
    found = whole == like.end() ? found : *whole;
  }
  const StepMark& step = steps[found];
  return SteadyStep{step.finish - median.length, step.finish, step.rows, true, found};
}

}  // namespace lockstep::cli
