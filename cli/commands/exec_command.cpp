// `exec` and `compare`: a real run, made now or left by ranks that were started elsewhere, compared
// with its simulation.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "cli/render/render_comparison.hpp"
#include "cli/render/timeline/timeline.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/jobs.hpp"
#include "rehearsal/launch/reports.hpp"
#include "rehearsal/measure/compare.hpp"

namespace lockstep::cli {

namespace {

// Only for a run that this command started: other runs began at a different time.
std::optional<Time> time_to_first_collective(const OneRun& run, const Request& request) {
  constexpr int64_t picoseconds_per_ns = 1000;
  return run.first_collective_clock_ns
             ? std::optional(Time((*run.first_collective_clock_ns - request.clock_at_start_ns) *
                                  picoseconds_per_ns))
             : std::nullopt;
}

/// What one case gave.
struct Executed {
  const Rehearsal* rehearsal = nullptr;
  Comparison comparison;
};

ExitCode exit_code_of(const Executed& executed, bool strict) {
  const ExitCode code = exit_code_of(*executed.rehearsal, strict);
  const bool differs = executed.comparison.not_compared.empty() && !executed.comparison.equal();
  return differs ? worse(code, ExitCode::findings) : code;
}

Json json_of(const Executed& executed, const Request& request) {
  Json json = json_of(*executed.rehearsal, request);
  json["exit_code"] = static_cast<int>(exit_code_of(executed, request.strict));
  json["comparison"] = json_of(executed.comparison);
  return json;
}

std::string rendered(const Executed& executed, const Style& style) {
  std::string text = render_verify(*executed.rehearsal, style);
  if (executed.rehearsal->ran()) {
    text += "\n" + render_comparison(*executed.rehearsal, executed.comparison, style);
  }
  return text;
}

Answer answer_of(const std::vector<Executed>& all, const Request& request, const Style& style) {
  Answer answer;
  std::vector<Json> cases;
  for (const Executed& executed : all) {
    answer.code = worse(answer.code, exit_code_of(executed, request.strict));
    if (request.format == Format::json) {
      cases.push_back(json_of(executed, request));
      continue;
    }
    std::string& to = executed.rehearsal->ran() ? answer.text : answer.diagnostics;
    if (all.size() > 1) {
      to += (to.empty() ? "" : "\n") + style.strong("== " + title_of(*executed.rehearsal) + " ==") +
            "\n";
    }
    to += rendered(executed, style);
  }
  if (request.format == Format::json) {
    answer.text = text_of(report_json(std::move(cases), request, answer.code));
  }
  return answer;
}

Answer compare_cases(const Request& request, const RealWorld* real, const Style& style) {
  const CaseSource source = source_of(request, request.arguments.front());
  Collected collected = collect(source);
  check_outputs(request, collected);
  if (!collected.diagnostics.empty()) {
    return bad_input(request, collected);
  }
  const auto deadline = std::make_shared<const Deadline>(request.time_limit_s);
  RehearseRequest how;
  how.world = World::processes;
  how.explore = false;
  how.deadline = deadline;
  how.real = real;
  how.device = request.device;
  how.hang_after = std::chrono::milliseconds(static_cast<int64_t>(request.hang_after_s * 1e3));
  how.join_timeout = std::chrono::milliseconds(static_cast<int64_t>(request.join_timeout_s * 1e3));
  std::erase_if(collected.jobs, [](const Job& job) { return !job.asked; });
  rehearse_all(collected.jobs, how, Judges::words, 1);
  std::vector<Executed> all;
  for (const Job& job : collected.jobs) {
    const Rehearsal& rehearsal = job.result;
    all.push_back({&rehearsal, compare(*job.scenario, rehearsal.run, rehearsal.findings,
                                       request.skip_values, deadline.get())});
    if (real == nullptr && all.size() == 1) {
      all.back().comparison.time_to_first_collective =
          time_to_first_collective(rehearsal.run, request);
    }
  }
  Answer answer = answer_of(all, request, style);
  if (!request.timeline.empty() && all.front().rehearsal->ran()) {
    answer.diagnostics += write_timeline(*all.front().rehearsal, request.timeline);
  }
  return answer;
}

}  // namespace

Answer exec_command(const Request& request, const Style& style) {
  return compare_cases(request, nullptr, style);
}

Answer compare_command(const Request& request, const Style& style) {
  const RealWorld left_behind = [&request](const Preparation& preparation, const ProgramOfRank&) {
    RealRun real = gather_reports(request.reports, preparation, [&](int32_t rank) -> RankEnd {
      if (std::filesystem::exists(std::filesystem::path(request.reports) / journal_name(rank))) {
        return {RankEnd::Kind::lost, no_site, "left no report", false};
      }
      throw RealRunFailed(fmt::format("{} holds no {}; start every rank with --report-folder {}",
                                      request.reports, report_name(rank), request.reports));
    });
    const auto did_nothing = [&real](int32_t rank) {
      return real.result.ends[static_cast<size_t>(rank)].kind == RankEnd::Kind::lost &&
             last_operation(*real.result.journal, rank).count == 0;
    };
    const auto ranks = std::views::iota(0, preparation.options.world_size);
    if (std::ranges::all_of(ranks, did_nothing)) {
      throw RealRunFailed(fmt::format(
          "all ranks of {} ended before their first operation, so there is nothing to compare; "
          "see their output for the reason",
          request.reports));
    }
    return real;
  };
  return compare_cases(request, &left_behind, style);
}

}  // namespace lockstep::cli
