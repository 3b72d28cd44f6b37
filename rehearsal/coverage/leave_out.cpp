#include "rehearsal/coverage/leave_out.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "rehearsal/coverage/paths.hpp"
#include "rehearsal/run/process_run.hpp"

namespace lockstep::cli {

namespace {

/// What a case gave.
struct Simulated {
  std::vector<uint64_t> paths;
  std::string refusal;  ///< Job::refusal
};
using SimulatedScenarios = std::map<const Scenario*, Simulated>;

// Keeps the paths alone: journals of many cases would not fit in memory together.
SimulatedScenarios simulate(const std::vector<Job>& jobs, const RehearseRequest& request,
                            int threads) {
  std::vector<CaseWork> cases;
  for (const Job& job : jobs) {
    cases.push_back({job.source, job.scenario, job.sources, request});
    cases.back().request.world = World::simulated;
    cases.back().request.explore = false;
  }
  SimulatedScenarios simulated;
  std::mutex guard;
  const auto look = [&](const CaseWork& work) {
    const Rehearsal rehearsal = rehearse_case(work);
    Simulated own{paths_of(rehearsal), ""};
    if (request.world == World::processes) {
      own.refusal = unknown_to_rank_programs(rehearsal.run).problem;
    }
    const std::lock_guard lock(guard);
    simulated[work.scenario.get()] = std::move(own);
    return undecided_rehearsal(work, "");
  };
  const Deadline unlimited;
  CaseResults results = run_cases(
      std::move(cases), look, request.deadline == nullptr ? unlimited : *request.deadline, threads);
  if (results.failure) {
    std::rethrow_exception(results.failure);
  }
  return simulated;
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
  const SimulatedScenarios simulated = simulate(jobs, request, threads);
  std::vector<size_t> asked;
  std::vector<std::vector<uint64_t>> paths;
  for (size_t index = 0; index < jobs.size(); ++index) {
    Job& job = jobs[index];
    const auto found = simulated.find(job.scenario.get());
    job.refusal = found == simulated.end() ? "" : found->second.refusal;
    if (job.asked && job.refusal.empty() &&
        !(is_real(request.world) && needs_simulation(*job.scenario))) {
      asked.push_back(index);
      paths.push_back(found == simulated.end() ? std::vector<uint64_t>() : found->second.paths);
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
    job.left_out = job.left_out && (!job.refusal.empty() ||
                                    named.count({job.scenario->file, job.scenario->name}) == 0);
    if (job.left_out) {
      job.result = undecided_rehearsal({job.source, job.scenario, job.sources, request}, "");
    }
  }
}

}  // namespace lockstep::cli
