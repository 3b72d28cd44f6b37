#include "rehearsal/coverage/leave_out.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "rehearsal/coverage/paths.hpp"

namespace lockstep::cli {

namespace {

using PathsOfScenario = std::map<const Scenario*, std::vector<uint64_t>>;

// Keeps the paths alone: journals of many cases would not fit in memory together.
PathsOfScenario simulate(const std::vector<Job>& jobs, const RehearseRequest& request,
                         int threads) {
  std::vector<CaseWork> cases;
  for (const Job& job : jobs) {
    cases.push_back({job.source, job.scenario, job.sources, request});
    cases.back().request.world = World::simulated;
    cases.back().request.explore = false;
  }
  PathsOfScenario paths;
  std::mutex guard;
  const auto look = [&](const CaseWork& work) {
    std::vector<uint64_t> own = paths_of(rehearse_case(work));
    const std::lock_guard lock(guard);
    paths[work.scenario.get()] = std::move(own);
    return undecided_rehearsal(work, "");
  };
  const Deadline unlimited;
  CaseResults results = run_cases(
      std::move(cases), look, request.deadline == nullptr ? unlimited : *request.deadline, threads);
  if (results.failure) {
    std::rethrow_exception(results.failure);
  }
  return paths;
}

std::set<std::pair<std::string, std::string>> named_by(const std::vector<const Job*>& jobs) {
  std::set<std::pair<std::string, std::string>> named;
  for (const Job* job : jobs) {
    for (const std::string& name : cases_named(*job->scenario)) {
      named.insert({job->scenario->file, name});
    }
  }
  return named;
}

// Only a simulated world makes times longer, or has agents of other nodes that wait for one that is
// lost: such a case cannot stand for others in a real one.
bool needs_simulation(const Scenario& scenario) {
  return std::ranges::any_of(scenario.faults, [](const FaultSpec& fault) {
    return fault.kind == FaultKind::straggler || fault.kind == FaultKind::slow_data ||
           fault.kind == FaultKind::slow_link || fault.kind == FaultKind::lost_node;
  });
}

}  // namespace

void leave_out_covered(std::vector<Job>& jobs, const RehearseRequest& request, int threads) {
  const PathsOfScenario simulated = simulate(jobs, request, threads);
  std::vector<size_t> asked;
  std::vector<std::vector<uint64_t>> paths;
  for (size_t index = 0; index < jobs.size(); ++index) {
    if (jobs[index].asked && !(is_real(request.world) && needs_simulation(*jobs[index].scenario))) {
      const auto found = simulated.find(jobs[index].scenario.get());
      asked.push_back(index);
      paths.push_back(found == simulated.end() ? std::vector<uint64_t>() : found->second);
    }
  }
  for (Job& job : jobs) {
    job.left_out = true;
  }
  std::vector<const Job*> running;
  for (const size_t position : covering_cases(paths)) {
    running.push_back(&jobs[asked[position]]);
    jobs[asked[position]].left_out = false;
  }
  const auto named = named_by(running);
  for (Job& job : jobs) {
    job.left_out = job.left_out && named.count({job.scenario->file, job.scenario->name}) == 0;
    if (job.left_out) {
      job.result = undecided_rehearsal({job.source, job.scenario, job.sources, request}, "");
    }
  }
}

}  // namespace lockstep::cli
