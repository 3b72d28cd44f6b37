#include "rehearsal/jobs.hpp"

#include <algorithm>
#include <exception>
#include <new>

namespace lockstep::cli {

Rehearsal rehearse_case(const CaseWork& work) {
  const RehearseRequest& request = work.request;
  const auto failed = [&](const char* message, const char* remedy) {
    Rehearsal rehearsal = undecided_rehearsal(work, "");
    rehearsal.problems.push_back(
        {Problem::Kind::invalid, {work.scenario->file, 0, 0}, message, remedy});
    return rehearsal;
  };
  if (request.deadline != nullptr && request.deadline->passed()) {
    return undecided_rehearsal(work, request.deadline->reason());
  }
  try {
    return rehearse(work.source, work.scenario, work.sources, request);
  } catch (const QuantityOverflow& error) {
    return failed(error.what(), "make the sizes, counts or times of the scenario smaller");
  } catch (const StoreError& error) {
    return undecided_rehearsal(work, error.what());
  } catch (const std::bad_alloc&) {
    return failed("the scenario needs more memory than this machine has",
                  "use fewer ranks, steps or samples");
  }
}

namespace {

Rehearsal rehearse_with_progress(const CaseWork& work) {
  const std::shared_ptr<Progress> progress = work.request.progress;
  if (progress != nullptr) {
    const Scenario& scenario = *work.scenario;
    progress->case_begins(scenario.name.empty() ? scenario.file
                                                : scenario.file + ":" + scenario.name);
  }
  Rehearsal rehearsal = rehearse_case(work);
  if (progress != nullptr) {
    progress->case_ends();
  }
  return rehearsal;
}

void judge_all(std::vector<Job>& jobs, Judges judges) {
  for (Job& job : jobs) {
    if (job.left_out) {
      continue;
    }
    const OtherCase other = [&](const std::string& name) -> const Rehearsal* {
      for (const Job& candidate : jobs) {
        if (candidate.scenario->file == job.scenario->file && candidate.scenario->name == name) {
          return &candidate.result;
        }
      }
      return nullptr;
    };
    job.result.expectations = judge(job.result, judges, other);
  }
}

}  // namespace

Collected collect(const CaseSource& source) {
  Collected collected;
  LoadedScenarios loaded = source.load();
  collected.diagnostics = std::move(loaded.diagnostics);
  collected.sources = std::move(loaded.sources);
  collected.files = std::move(loaded.files);
  if (!collected.diagnostics.empty()) {
    return collected;
  }
  const auto sources = std::make_shared<const Sources>(collected.sources);
  for (Scenario& scenario : loaded.scenarios) {
    collected.jobs.push_back(
        {source, std::make_shared<const Scenario>(std::move(scenario)), sources});
  }
  for (size_t index = 0; index < collected.jobs.size(); ++index) {
    for (const std::string& name : cases_named(*collected.jobs[index].scenario)) {
      const bool known = std::any_of(collected.jobs.begin(), collected.jobs.end(),
                                     [&](const Job& job) { return job.scenario->name == name; });
      CaseSource other = source;
      other.scenario_case = name;
      LoadedScenarios more = known ? LoadedScenarios{} : other.load();
      if (!more.diagnostics.empty()) {
        collected.diagnostics = std::move(more.diagnostics);
        return collected;
      }
      for (Scenario& scenario : more.scenarios) {
        collected.jobs.push_back(
            {other, std::make_shared<const Scenario>(std::move(scenario)), sources, false});
      }
    }
  }
  return collected;
}

bool rehearse_all(std::vector<Job>& jobs, const RehearseRequest& request, Judges judges,
                  int threads) {
  std::vector<Job*> rehearsed;
  for (Job& job : jobs) {
    if (!job.left_out) {
      rehearsed.push_back(&job);
    }
  }
  if (request.progress != nullptr) {
    request.progress->expect(rehearsed.size());
  }
  std::vector<CaseWork> cases;
  for (const Job* job : rehearsed) {
    cases.push_back({job->source, job->scenario, job->sources, request});
    cases.back().request.threads = std::max(1, threads / static_cast<int>(rehearsed.size()));
    if (request.deadline != nullptr) {
      cases.back().request.deadline =
          std::make_shared<const Deadline>(request.deadline->for_another_case());
    }
  }
  bool leaves_threads = false;
  if (request.world == World::processes) {  // has its own way to end ranks in time
    for (size_t index = 0; index < rehearsed.size(); ++index) {
      rehearsed[index]->result = rehearse_with_progress(cases[index]);
    }
  } else {
    const Deadline unlimited;
    CaseResults results =
        run_cases(std::move(cases), rehearse_with_progress,
                  request.deadline == nullptr ? unlimited : *request.deadline, threads);
    if (results.failure) {
      std::rethrow_exception(results.failure);
    }
    leaves_threads = results.leaves_threads;
    for (size_t index = 0; index < rehearsed.size(); ++index) {
      rehearsed[index]->result = std::move(results.rehearsals[index]);
    }
  }
  judge_all(jobs, judges);
  return !leaves_threads;
}

}  // namespace lockstep::cli
