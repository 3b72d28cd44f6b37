// `plan`: the fastest way to divide a training among its GPUs.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/input_files.hpp"
#include "cli/render/render_plan.hpp"
#include "rehearsal/plan/layout_task.hpp"
#include "rehearsal/plan/plan_search.hpp"
#include "rehearsal/sweep/check_cases.hpp"
#include "rehearsal/sweep/run_sweep.hpp"
#include "rehearsal/sweep/sweep_row_of.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr double usual_time_limit_s = 60;

/// What every layout is simulated with: some steps, and nothing beside the training.
std::vector<std::string> simulated_with() {
  return {"trainer.max_steps=3", "trainer.limit_val_batches=0", "trainer.num_sanity_val_steps=0",
          "trainer.enable_checkpointing=false"};
}

/// Runs the layouts of a wave, as many at a time as asked.
class Waves {
 public:
  Waves(const Request& request, CaseSource source, const LayoutTask& task,
        const std::vector<Layout>& layouts, const Deadline& deadline, bool shows_progress)
      : request_(request),
        source_(std::move(source)),
        task_(task),
        layouts_(layouts),
        deadline_(deadline),
        progress_(std::make_shared<Progress>(shows_progress)) {}

  std::vector<std::optional<SweepRow>> run(const std::vector<size_t>& chosen);
  bool leaves_threads() const { return leaves_threads_; }
  void end() { progress_->end(); }

 private:
  const Request& request_;
  CaseSource source_;
  const LayoutTask& task_;
  const std::vector<Layout>& layouts_;
  const Deadline& deadline_;
  std::shared_ptr<Progress> progress_;
  bool leaves_threads_ = false;
};

std::vector<std::optional<SweepRow>> Waves::run(const std::vector<size_t>& chosen) {
  std::vector<std::optional<SweepRow>> rows(chosen.size());
  if (deadline_.passed()) {
    return rows;
  }
  std::vector<int64_t> numbers;
  std::vector<CaseSource> sources;
  for (const size_t index : chosen) {
    numbers.push_back(std::ssize(numbers) + 1);
    CaseSource own = source_;
    for (const auto& more : {simulated_with(), layouts_[index].settings(task_)}) {
      own.set.insert(own.set.end(), more.begin(), more.end());
    }
    sources.push_back(std::move(own));
  }
  progress_->expect(numbers.size(), "layouts");
  RehearseRequest how;
  how.explore = false;
  // Owns all that it uses: a thread may outlive this call.
  const auto run_one = [how, progress = progress_, deadline = deadline_,
                        shared = std::make_shared<const std::vector<CaseSource>>(
                            std::move(sources))](int64_t number) {
    progress->case_begins(fmt::format("layout {}", number));
    RehearseRequest own = how;
    own.deadline = std::make_shared<const Deadline>(deadline.for_another_case());
    SweepRow row =
        run_sweep_case((*shared)[static_cast<size_t>(number - 1)], SweepCases(), number, own);
    progress->case_ends();
    return row;
  };
  const SweepEnd end = run_sweep(
      numbers, run_one,
      [&rows](const SweepRow& row) { rows[static_cast<size_t>(row.number - 1)] = row; }, deadline_,
      threads_of(request_));
  leaves_threads_ = leaves_threads_ || end.leaves_threads;
  if (end.failure) {
    std::rethrow_exception(end.failure);
  }
  return rows;
}

ExitCode code_of(const PlanResult& result) {
  if (!result.best.empty()) {
    return ExitCode::ok;
  }
  return result.left > 0 ? ExitCode::undecided : ExitCode::findings;
}

}  // namespace

Answer plan_command(const Request& request, const Style& style) {
  CaseSource source = source_of(request, request.arguments.front());
  source.reader = reading_once();
  const Collected collected = collect(source);
  if (!collected.diagnostics.empty()) {
    return {"", render(collected.diagnostics, collected.sources), ExitCode::bad_input};
  }
  const auto asked = std::ranges::count_if(collected.jobs, &Job::asked);
  if (asked != 1) {
    return {"",
            fmt::format("error: {} has {} cases, and a plan is of one\n   = write {}:CASE\n",
                        source.path, asked, source.path),
            ExitCode::usage};
  }
  const auto job = std::ranges::find_if(collected.jobs, &Job::asked);
  if (!job->scenario->name.empty()) {
    source.scenario_case = job->scenario->name;
  }
  const TaskOfScenario of = task_of(source, request.plan.samples);
  if (!of.why_not.empty()) {
    return {"",
            fmt::format("error: {}\n   = a plan needs a training that ddp could run\n", of.why_not),
            ExitCode::bad_input};
  }
  const Deadline deadline(request.time_limit_s.value_or(usual_time_limit_s), request.value_memory);
  const std::vector<Layout> layouts = layouts_of(of.task);
  if (layouts.empty()) {
    return {
        "",
        fmt::format("error: {} per step cannot be divided among replicas of {} ranks\n   = write "
                    "--samples {}, or another multiple\n",
                    plural(of.task.samples, "sample"), of.task.ranks, of.task.ranks),
        ExitCode::usage};
  }
  Waves waves(request, source, of.task, layouts, deadline, request.progress || style.progress);
  const SearchOptions how{request.plan.top, size_t{4} * threads_of(request)};
  const PlanResult result =
      search_plan(of.task, layouts, how,
                  [&waves](const std::vector<size_t>& chosen) { return waves.run(chosen); });
  waves.end();
  ShownPlan shown{of, result, {}};
  for (const TriedLayout& tried : result.best) {
    if (std::ssize(shown.commands) < request.plan.top) {
      shown.commands.push_back(command_of(source, tried.layout.settings(of.task)));
    }
  }
  Answer answer;
  answer.leaves_threads = waves.leaves_threads();
  answer.code = code_of(result);
  answer.text = request.format == Format::json  ? plan_json(shown, static_cast<int>(answer.code))
                : request.format == Format::csv ? plan_csv(shown)
                                                : render_plan(shown, style);
  mark_interrupted(answer, deadline);
  return answer;
}

}  // namespace lockstep::cli
