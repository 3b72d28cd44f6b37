#include "sim/fault_horizon.hpp"

#include <algorithm>
#include <limits>

namespace lockstep::sim {

namespace {

// Of periods that each begin `each` of what is counted, those before number `count` begins.
int64_t periods_until(int64_t first, int64_t each, int64_t count) {
  if (each == 0) {
    return std::numeric_limits<int64_t>::max();
  }
  return std::max<int64_t>(0, count - first) / each;
}

}  // namespace

FaultHorizon::FaultHorizon(const std::vector<TimedFault>& faults) {
  for (const TimedFault& fault : faults) {
    const bool is_timed = fault.at.kind == Instant::Kind::time;
    faults_.push_back({fault, is_timed ? std::optional(fault.at.time) : std::nullopt});
  }
}

Time FaultHorizon::Planned::until() const {
  return fault.duration < Time::max() - *from ? *from + fault.duration : Time::max();
}

void FaultHorizon::reached(RankId rank, const Position& position, Time now) {
  for (Planned& planned : faults_) {
    const bool concerns = planned.fault.rank == TimedFault::any_rank ||
                          planned.fault.rank == static_cast<int32_t>(rank.value);
    if (!planned.from && concerns && planned.fault.at.has_come(position, now)) {
      planned.from = now;
    }
  }
}

int64_t FaultHorizon::changes_by(Time now) const {
  int64_t changes = 0;
  for (const Planned& planned : faults_) {
    if (planned.from) {
      changes += (*planned.from <= now ? 1 : 0) + (planned.until() <= now ? 1 : 0);
    }
  }
  return changes;
}

int64_t FaultHorizon::periods_before(const PeriodStart& start) const {
  int64_t periods = std::numeric_limits<int64_t>::max();
  for (const Planned& planned : faults_) {
    if (planned.from) {
      continue;
    }
    const Instant& at = planned.fault.at;
    periods = std::min(periods, at.kind == Instant::Kind::step
                                    ? periods_until(start.step, start.steps_most, at.count)
                                    : periods_until(start.epoch, start.epochs, at.count));
  }
  return periods;
}

bool FaultHorizon::are_to_begin() const {
  return std::ranges::any_of(faults_, [](const Planned& planned) { return !planned.from; });
}

bool FaultHorizon::begins_with(RankId rank) const {
  return std::ranges::any_of(faults_, [rank](const Planned& planned) {
    return !planned.from && (planned.fault.rank == TimedFault::any_rank ||
                             planned.fault.rank == static_cast<int32_t>(rank.value));
  });
}

Time FaultHorizon::next_change(Time now) const {
  Time next = Time::max();
  for (const Planned& planned : faults_) {
    if (!planned.from) {
      continue;
    }
    for (const Time at : {*planned.from, planned.until()}) {
      next = at > now ? std::min(next, at) : next;
    }
  }
  return next;
}

}  // namespace lockstep::sim
