#include "cli/render/over_time/moments.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "cli/render/over_time/moment_edges.hpp"

namespace lockstep::cli {

namespace {

Moment moment_of(const ActiveCounts& own, bool another_waits) {
  const auto is = [&own](Activity::Kind kind) { return own.of[kind] > 0; };
  if (is(Activity::compute) || is(Activity::optimizer) || is(Activity::communication)) {
    return Moment::working;
  }
  if (own.checkpoints > 0) {
    return Moment::checkpoint;
  }
  if (is(Activity::loading)) {
    return Moment::data;
  }
  if (is(Activity::host) || is(Activity::optimizer_on_host)) {
    return another_waits ? Moment::alone : Moment::host;
  }
  if (is(Activity::drive) || is(Activity::offload)) {
    return Moment::copies;
  }
  if (is(Activity::prepared)) {
    return Moment::data;
  }
  return is(Activity::waiting) ? Moment::other_ranks : Moment::nothing;
}

// Its call has come, and nothing else keeps its device or its thread busy.
bool only_waits(const ActiveCounts& rank) {
  for (size_t kind = 0; kind < Activity::count; ++kind) {
    if (kind != Activity::waiting && rank.of[kind] > 0) {
      return false;
    }
  }
  return rank.of[Activity::waiting] > 0;
}

}  // namespace

std::string_view phrase_of(Moment moment) {
  constexpr std::string_view phrases[] = {
      "working", "checkpoint", "waiting for data",        "one rank alone",
      "host",    "copies",     "waiting for other ranks", "idle"};
  return phrases[static_cast<size_t>(moment)];
}

std::string_view key_of(Moment moment) {
  constexpr std::string_view keys[] = {"working", "checkpoint", "data",        "one_rank_alone",
                                       "host",    "copies",     "other_ranks", "idle"};
  return keys[static_cast<size_t>(moment)];
}

MomentTimes& MomentTimes::operator+=(const MomentTimes& more) {
  for (size_t kind = 0; kind < moment_count; ++kind) {
    of[kind] += more.of[kind];
  }
  evaluating += more.evaluating;
  return *this;
}

MomentTimes& MomentTimes::operator-=(const MomentTimes& less) {
  for (size_t kind = 0; kind < moment_count; ++kind) {
    of[kind] -= less.of[kind];
  }
  evaluating -= less.evaluating;
  return *this;
}

MomentTimes operator*(MomentTimes one, int64_t times) {
  for (Time& time : one.of) {
    time = time * times;
  }
  one.evaluating = one.evaluating * times;
  return one;
}

Moments::Moments(const RunResult& run, int32_t rank, const std::vector<int32_t>& others)
    : stretches_(left_out_stretches(*run.journal, rank)) {
  std::vector<MomentEdge> edges = edges_of_rank(*run.journal, rank, 0, stretches_);
  evaluations_ = evaluations_of(*run.journal, rank);
  for (const auto& [begin, end] : evaluations_) {
    edges.push_back({begin, 1, 0, MomentEdge::evaluation});
    edges.push_back({end, -1, 0, MomentEdge::evaluation});
  }
  std::vector<ActiveCounts> active(1 + others.size());
  for (size_t other = 0; other < others.size(); ++other) {
    const std::vector<MomentEdge> more =
        edges_of_rank(*run.journal, others[other], static_cast<int32_t>(other + 1), stretches_);
    edges.insert(edges.end(), more.begin(), more.end());
  }
  std::stable_sort(edges.begin(), edges.end(), [](const MomentEdge& left, const MomentEdge& right) {
    return left.at < right.at;
  });
  marks_.push_back({});
  int evaluating = 0;
  for (size_t at = 0; at < edges.size();) {
    const Time now = edges[at].at;
    for (; at < edges.size() && edges[at].at == now; ++at) {
      if (edges[at].what == MomentEdge::evaluation) {
        evaluating += edges[at].change;
      } else {
        active[static_cast<size_t>(edges[at].rank)].add(edges[at]);
      }
    }
    const bool another_waits = std::any_of(active.begin() + 1, active.end(), only_waits);
    const Moment moment = moment_of(active.front(), another_waits);
    if (moment != marks_.back().moment || (evaluating > 0) != marks_.back().evaluates) {
      marks_.push_back({now, simulated_until(now), moment, evaluating > 0});
    }
  }
  for (const LeftOutStretch& stretch : stretches_) {
    const Time repeated = stretch.begin - stretch.rows.first;
    of_stretches_.emplace_back(until(stretch.begin),
                               between(repeated, repeated + stretch.rows.period));
  }
}

MomentTimes Moments::simulated_until(Time moment) const {
  const auto behind = std::upper_bound(marks_.begin(), marks_.end(), moment,
                                       [](Time at, const Mark& mark) { return at < mark.at; });
  const Mark& mark = *std::prev(behind);
  MomentTimes times = mark.before;
  times.of[static_cast<size_t>(mark.moment)] += moment - mark.at;
  times.evaluating += mark.evaluates ? moment - mark.at : Time{};
  return times;
}

// Only the stretches that are known already count: those of an earlier time.
MomentTimes Moments::until(Time moment) const {
  const auto end = stretches_.begin() + std::ssize(of_stretches_);
  const auto behind =
      std::upper_bound(stretches_.begin(), end, moment,
                       [](Time at, const LeftOutStretch& one) { return at < one.begin; });
  if (behind == stretches_.begin()) {
    return simulated_until(moment);
  }
  const auto last = std::prev(behind);
  const auto& [before, period] = of_stretches_[static_cast<size_t>(last - stretches_.begin())];
  MomentTimes times = before;
  if (moment >= last->end()) {
    times += period * last->rows.periods;
    times += simulated_until(moment);
    times -= simulated_until(last->end());
    return times;
  }
  times += period * ((moment - last->begin) / last->rows.period);
  times += between(last->repeats(last->begin), last->repeats(moment));
  return times;
}

MomentTimes Moments::between(Time begin, Time end) const {
  MomentTimes times = until(end);
  times -= until(begin);
  return times;
}

}  // namespace lockstep::cli
