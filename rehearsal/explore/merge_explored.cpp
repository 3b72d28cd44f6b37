#include "rehearsal/explore/merge_explored.hpp"

#include <algorithm>

#include "properties/diagnosis/shrink.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t default_max_schedules = 10'000;

int64_t schedules_max(const Scenario& scenario, const RehearseRequest& request) {
  if (!request.explore) {
    return 1;
  }
  const int64_t asked = scenario.verify
                            ? value_or(scenario.verify->max_schedules, default_max_schedules)
                            : default_max_schedules;
  return std::max<int64_t>(1, asked);
}

}  // namespace

ExploreRequest explore_request(const Scenario& scenario, const RehearseRequest& request) {
  // A diagnosis needs to know what waits behind what.
  const bool lists = request.explore || is_real(request.world);
  // What nobody judges is not computed.
  const bool judged = request.explore || is_real(request.world);
  return {request.world,
          schedules_max(scenario, request),
          lists,
          request.deadline.get(),
          request.hang_after,
          request.join_timeout,
          request.ranks_max,
          request.real,
          request.progress.get(),
          request.journal_bytes_max,
          request.device,
          judged ? Arithmetic::always : Arithmetic::where_it_decides,
          request.threads,
          {},
          request.keeps_steps};
}

void add_coverage(Rehearsal& rehearsal, const Explored& explored) {
  Coverage& coverage = rehearsal.coverage;
  coverage.schedules += explored.schedules;
  coverage.complete = coverage.complete && explored.complete;
  coverage.free = coverage.free || explored.free;
  for (const std::string& text : explored.ways) {
    if (std::count(coverage.looked_at.begin(), coverage.looked_at.end(), text) == 0) {
      coverage.looked_at.push_back(text);
    }
  }
  for (const std::string& text : explored.left_out) {
    if (std::count(coverage.not_looked_at.begin(), coverage.not_looked_at.end(), text) == 0) {
      coverage.not_looked_at.push_back(text);
    }
  }
  rehearsal.hung = rehearsal.hung || explored.hung;
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = explored.undecided;
  }
}

}  // namespace lockstep::cli
