// `run` and `verify`: every case of one file, in order.
#include <fmt/format.h>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/files_of_run.hpp"
#include "cli/commands/strategy_cases.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "cli/render/render_side_by_side.hpp"
#include "cli/step_range.hpp"
#include "model/core/ensure.hpp"
#include "rehearsal/jobs.hpp"
#include "rehearsal/run/draw_faults.hpp"

namespace lockstep::cli {

namespace {

std::string rendered(const Rehearsal& rehearsal, const Request& request, const Style& style) {
  return request.command == "run" ? render_run(rehearsal, style, request.verbose)
                                  : render_verify(rehearsal, style);
}

void add_case(Answer& answer, const Job& job, const Request& request, const Style& style,
              bool heading) {
  const Rehearsal& rehearsal = job.result;
  // A case that never ran has no result to print; its errors are diagnostics.
  const bool told_beside = !rehearsal.ran() && !rehearsal.refused();
  std::string& to = told_beside ? answer.diagnostics : answer.text;
  if (heading) {
    to += (to.empty() ? "" : "\n") + style.strong("== " + title_of(rehearsal) + " ==") + "\n";
  }
  to += rendered(rehearsal, request, style);
}

std::string note_of_disk(const Rehearsal& rehearsal) {
  const std::shared_ptr<TemporaryStore>& store = rehearsal.run.store;
  return store == nullptr || store->bytes() == 0
             ? ""
             : fmt::format("note: the journal took {} of a temporary file in {} (TMPDIR)\n",
                           bytes_text(store->bytes()), store->folder());
}

/// The faults drawn for each job; of a case with faults of its own, why there are none.
struct DrawnFaults {
  std::vector<std::vector<std::string>> by_job;
  std::string error;
};

std::string name_of(const Scenario& scenario) {
  return scenario.file + (scenario.name.empty() ? "" : ":") + scenario.name;
}

// Reads each case again with its faults, so that smaller variants and other world sizes have them
// too. A case that does not run keeps none: rehearsing it shows why.
DrawnFaults add_drawn_faults(std::vector<Job>& jobs, const Request& request,
                             const RehearseRequest& how) {
  DrawnFaults drawn;
  if (request.draw_faults > 0) {
    how.progress->expect(jobs.size());
  }
  drawn.by_job.resize(jobs.size());
  for (size_t index = 0; index < jobs.size() && request.draw_faults > 0; ++index) {
    Job& job = jobs[index];
    if (!job.scenario->faults.empty()) {
      drawn.error = fmt::format(
          "error: {} has faults of its own\n   = --draw-faults N draws "
          "for a case without: add --set 'faults=[]'\n",
          name_of(*job.scenario));
      return drawn;
    }
    how.progress->case_begins(name_of(*job.scenario));
    how.progress->phase("before faults are drawn");
    RunRequest once{World::simulated, false, {}, how.deadline.get()};
    once.progress = how.progress.get();
    const OneRun healthy = run_once(*job.scenario, once);
    how.progress->case_ends();
    if (!healthy.ran || !healthy.undecided.empty()) {
      continue;
    }
    const auto seed = static_cast<uint64_t>(value_or(job.scenario->seed, int64_t{0}));
    drawn.by_job[index] = draw_faults(healthy, request.world, seed, request.draw_faults);
    job.source.set.push_back(setting_of_faults(drawn.by_job[index]));
    if (!job.scenario->name.empty()) {
      job.source.scenario_case = job.scenario->name;
    }
    LoadedScenarios loaded = job.source.load();
    ensure(loaded.ok(), "drawn faults are legal in the scenario that they were drawn for");
    job.scenario = std::make_shared<const Scenario>(std::move(loaded.scenarios.front()));
    job.sources = std::make_shared<const Sources>(std::move(loaded.sources));
  }
  return drawn;
}

Answer rehearse_cases(const Request& request, const RehearseRequest& how, Judges judges,
                      const Style& style) {
  if (!request.strategies.empty()) {
    return compare_strategies(request, how, judges, style);
  }
  const CaseSource source = source_of(request, request.arguments.front());
  Collected collected = collect(source);
  check_outputs(request, collected);
  if (!collected.diagnostics.empty()) {
    return bad_input(request, collected);
  }
  size_t asked = 0;
  for (const Job& job : collected.jobs) {
    asked += job.asked ? 1 : 0;
  }
  if (const std::string option = option_of_one_case(request); !option.empty() && asked > 1) {
    return {"",
            fmt::format("error: {} shows one case: write {}:{}\n", option, source.path,
                        collected.jobs.front().scenario->name),
            ExitCode::usage};
  }
  RehearseRequest watched = how;
  watched.progress = std::make_shared<Progress>(request.progress || style.progress);
  DrawnFaults drawn = add_drawn_faults(collected.jobs, request, watched);
  if (!drawn.error.empty()) {
    return {"", drawn.error, ExitCode::usage};
  }
  Answer answer;
  answer.leaves_threads = !rehearse_all(collected.jobs, watched, judges, threads_of(request));
  watched.progress->end();
  std::vector<const Rehearsal*> results;
  for (size_t index = 0; index < collected.jobs.size(); ++index) {
    Job& job = collected.jobs[index];
    if (!job.asked) {
      continue;
    }
    job.result.drawn_faults = drawn.by_job[index];
    results.push_back(&job.result);
    answer.code = worse(answer.code, exit_code_of(job.result, request.strict));
    if (request.format == Format::text) {
      add_case(answer, job, request, style, asked > 1);
    }
    answer.diagnostics += note_of_disk(job.result);
  }
  if (request.format == Format::json) {
    answer.text = text_of(json_of(results, request));
  } else if (request.command == "run") {
    const std::string table = render_side_by_side(results, style);
    answer.text += table.empty() ? "" : "\n" + table;
  }
  write_files_of_run(*results.front(), request, how.deadline.get(), answer);
  mark_interrupted(answer, *how.deadline);
  return answer;
}

}  // namespace

Answer run_command(const Request& request, const Style& style) {
  RehearseRequest how;
  how.world = request.world;
  how.explore = false;
  how.advise = true;
  how.keeps_steps = step_range_of(request.timeline_steps);
  how.deadline = std::make_shared<const Deadline>(request.time_limit_s, request.value_memory);
  return rehearse_cases(request, how, Judges::quantities, style);
}

Answer verify_command(const Request& request, const Style& style) {
  RehearseRequest how;
  how.world = request.world;
  how.find_smallest = true;
  how.deadline = std::make_shared<const Deadline>(request.time_limit_s, request.value_memory);
  return rehearse_cases(request, how, Judges::words, style);
}

}  // namespace lockstep::cli
