#include "rehearsal/run/weight_spreads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::cli {

namespace {

bool is_further(double apart, double than) {
  return apart > than || (std::isnan(apart) && !std::isnan(than));
}

}  // namespace

void RangeOfRanks::add(const Values& values) {
  if (least_.empty()) {
    least_.assign(static_cast<size_t>(values.size()), std::numeric_limits<double>::infinity());
    most_.assign(least_.size(), -std::numeric_limits<double>::infinity());
  }
  for (size_t i = 0; i < least_.size(); ++i) {
    const double number = values.number(static_cast<int64_t>(i));
    // A NaN stays.
    least_[i] = std::isnan(number) ? number : std::min(least_[i], number);
    most_[i] = std::isnan(number) ? number : std::max(most_[i], number);
  }
}

double RangeOfRanks::apart() const {
  double largest = 0;
  for (size_t i = 0; i < least_.size(); ++i) {
    const double apart = most_[i] - least_[i];
    largest = is_further(apart, largest) ? apart : largest;
  }
  return largest;
}

void WeightSpreads::add(const OfStep& one, size_t of_parameter) {
  if (!greatest || is_further(one.apart, greatest->apart)) {
    greatest = one;
    parameter = of_parameter;
  }
  if (one.step % every != 0) {
    return;
  }
  steps.push_back(one);
  if (std::ssize(steps) > steps_max) {
    every *= 2;
    std::erase_if(steps, [this](const OfStep& known) { return known.step % every != 0; });
  }
}

void WeightObserver::step_ended(int32_t rank, const BufferTable& buffers) {
  const ByRank<RankLog>& ranks = log_->ranks;
  const std::vector<Slice>& places = ranks[static_cast<size_t>(rank)].final_parameter_places;
  const int64_t step = ++steps_[rank];
  const auto has_values = [&buffers](const Slice& place) {
    return buffers.knows(place.buffer) && buffers.carries_values(place.buffer);
  };
  if (places.empty() || step <= forgotten_ || !std::ranges::all_of(places, has_values)) {
    return;
  }
  if (trainers_ == 0) {
    trainers_ = std::ranges::count(ranks, true, &RankLog::runs_trainer);
  }
  Pending& pending = pending_[step];
  pending.parameters.resize(places.size());
  int64_t elements = 0;
  for (size_t index = 0; index < places.size(); ++index) {
    pending.parameters[index].add(buffers.load(places[index]));
    elements += places[index].elements;
  }
  if (++pending.ranks == trainers_) {
    complete(step, pending);
    pending_.erase(step);
  }
  while (std::ssize(pending_) > 1 && std::ssize(pending_) * 2 * elements > pending_max) {
    forgotten_ = pending_.begin()->first;
    pending_.erase(pending_.begin());
  }
}

void WeightObserver::complete(int64_t step, const Pending& pending) {
  double furthest = 0;
  size_t parameter = 0;
  for (size_t index = 0; index < pending.parameters.size(); ++index) {
    const double apart = pending.parameters[index].apart();
    if (is_further(apart, furthest)) {
      furthest = apart;
      parameter = index;
    }
  }
  spreads_.add({step, furthest}, parameter);
}

}  // namespace lockstep::cli
