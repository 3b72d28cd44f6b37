#include "cli/jobs.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

namespace lockstep::cli {

namespace {

// Failures caused by input that no reader can detect beforehand become a problem of that case.
Rehearsal rehearse_job(const Job& job, const RehearseRequest& request) {
  const auto failed = [&](const char* message, const char* remedy) {
    Rehearsal rehearsal;
    rehearsal.scenario = job.scenario;
    rehearsal.sources = job.sources;
    rehearsal.problems.push_back(
        {Problem::Kind::invalid, {job.scenario->file, 0, 0}, message, remedy});
    return rehearsal;
  };
  const auto undecided = [&](const std::string& why) {
    Rehearsal rehearsal;
    rehearsal.scenario = job.scenario;
    rehearsal.sources = job.sources;
    rehearsal.undecided = why;
    return rehearsal;
  };
  if (request.deadline != nullptr && request.deadline->passed()) {
    return undecided(time_limit_reached);
  }
  try {
    return rehearse(job.source, job.scenario, job.sources, request);
  } catch (const QuantityOverflow& error) {
    return failed(error.what(), "make the sizes, counts or times of the scenario smaller");
  } catch (const StoreError& error) {
    return undecided(error.what());
  } catch (const std::bad_alloc&) {
    return failed("the scenario needs more memory than this machine has",
                  "use fewer ranks, steps or samples");
  }
}

void judge_all(std::vector<Job>& jobs, Judges judges) {
  for (Job& job : jobs) {
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
  if (!collected.diagnostics.empty()) {
    return collected;
  }
  const auto sources = std::make_shared<const Sources>(collected.sources);
  for (Scenario& scenario : loaded.scenarios) {
    collected.jobs.push_back(
        {source, std::make_shared<const Scenario>(std::move(scenario)), sources, true, {}});
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
            {other, std::make_shared<const Scenario>(std::move(scenario)), sources, false, {}});
      }
    }
  }
  return collected;
}

int threads_of(const Request& request) {
  if (is_real(request.world)) {
    return 1;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return request.jobs > 0 ? request.jobs : static_cast<int>(cores);
}

void rehearse_all(std::vector<Job>& jobs, const RehearseRequest& request, Judges judges,
                  int threads) {
  std::atomic<size_t> next = 0;
  std::mutex guard;
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t index = next++; index < jobs.size(); index = next++) {
      try {
        if (request.progress != nullptr) {
          const Scenario& scenario = *jobs[index].scenario;
          request.progress->case_begins(
              scenario.name.empty() ? scenario.file : scenario.file + ":" + scenario.name);
        }
        jobs[index].result = rehearse_job(jobs[index], request);
        if (request.progress != nullptr) {
          request.progress->case_ends();
        }
      } catch (...) {
        const std::lock_guard lock(guard);
        failure = failure ? failure : std::current_exception();
        next = jobs.size();
      }
    }
  };
  if (request.progress != nullptr) {
    request.progress->expect_cases(jobs.size());
  }
  const size_t count = std::min(jobs.size(), static_cast<size_t>(std::max(1, threads)));
  std::vector<std::thread> helpers;
  for (size_t helper = 1; helper < count; ++helper) {
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  judge_all(jobs, judges);
}

}  // namespace lockstep::cli
