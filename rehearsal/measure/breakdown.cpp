#include "rehearsal/measure/breakdown.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "rehearsal/measure/activity.hpp"
#include "rehearsal/measure/lane_spans.hpp"

namespace lockstep::cli {

namespace {

struct Edge {
  Time at{};
  int change = 0;
  Activity::Kind activity = Activity::compute;
};

// With what a simulation has left out put back.
std::vector<Edge> edges_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  std::vector<Edge> edges;
  Activity::Kind activity{};
  const std::function<void(Time, Time)> add = [&](Time from, Time until) {
    edges.push_back({from, 1, activity});
    edges.push_back({until, -1, activity});
  };
  for (int32_t number = 0; number < journal.lanes(rank); ++number) {
    const LaneJournal& lane = journal.lane(rank, number);
    int64_t index = 0;
    LaneSpans spans(journal, rank, number, begin, end);
    lane.for_each([&](const Row& row) {
      const std::optional<Activity::Kind> found = activity_of(row);
      const int64_t at = index++;
      const Completion done = found ? lane.completion(row.sequence) : Completion{};
      if (!found || done.outcome != Outcome::ok) {
        return;
      }
      activity = *found;
      spans.for_each(at, done.start, done.finish, add);
      if (activity == Activity::communication) {
        activity = Activity::waiting;
        spans.for_each(at, done.issue, done.start, add);
      }
    });
  }
  std::ranges::sort(edges, {}, &Edge::at);
  return edges;
}

void count_span(Breakdown& parts, const std::array<int, Activity::count>& active, Time span) {
  using enum Activity::Kind;
  if (active[compute] > 0) {
    parts.compute += span;
  } else if (active[optimizer] > 0) {
    parts.optimizer += span;
  } else if (active[optimizer_on_host] > 0) {
    parts.optimizer += span;
    parts.optimizer_on_host += span;
  } else if (active[communication] > 0) {
    parts.exposed_communication += span;
  } else if (active[loading] > 0) {
    parts.data += span;
  } else if (active[host] > 0) {
    parts.host += span;  // the rank does not wait for what is prepared meanwhile
  } else if (active[drive] > 0) {
    parts.drive += span;
  } else if (active[offload] > 0) {
    parts.offload += span;
  } else if (active[prepared] > 0) {
    parts.data += span;
  } else {
    parts.idle += span;
    parts.waiting += active[waiting] > 0 ? span : Time{};
  }
  parts.communication += active[communication] > 0 ? span : Time{};
  const bool busy = active[compute] > 0 || active[optimizer] > 0 || active[communication] > 0;
  parts.busy += busy ? span : Time{};
}

}  // namespace

Breakdown breakdown_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  Breakdown parts;
  std::array<int, Activity::count> active{};
  Time now = begin;
  for (const Edge& edge : edges_of(journal, rank, begin, end)) {
    count_span(parts, active, edge.at - now);
    active[edge.activity] += edge.change;
    now = edge.at;
  }
  count_span(parts, active, end - now);
  return parts;
}

}  // namespace lockstep::cli
