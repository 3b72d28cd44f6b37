#include "cli/commands/files_of_run.hpp"

#include <fmt/format.h>

#include <functional>

#include "cli/render/logs/write_logs.hpp"
#include "cli/render/report/report_page.hpp"
#include "cli/render/timeline/timeline.hpp"
#include "cli/step_range.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/step_sequence.hpp"
#include "rehearsal/outcome.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

/// An option, where it writes to, and what writes: it returns sentences for the user.
struct FileOfRun {
  std::string option;
  std::string path;
  std::function<std::string()> write;
};

std::vector<FileOfRun> files_of(const Rehearsal& rehearsal, const Request& request,
                                const Deadline* deadline) {
  const auto write_quietly = [](const std::string& path, const std::string& text) {
    write_atomically(path, text);
    return std::string();
  };
  return {
      {"--timeline", request.timeline, [&] { return write_timeline(rehearsal, request.timeline); }},
      {"--logs", request.files.logs,
       [&, deadline] { return write_logs(rehearsal, request.files.logs, deadline); }},
      {"--report", request.files.report,
       [&, write_quietly] {
         return write_quietly(request.files.report, report_page(rehearsal, request.command_line));
       }},
      {"--plot", request.files.plot,
       [&, write_quietly] { return write_quietly(request.files.plot, plot_of_run(rehearsal)); }},
  };
}

// Steps count as the timeline names them. What ended before its time is reported as a finding.
std::string fault_of_steps(const Rehearsal& rehearsal, const Request& request, Answer& answer) {
  const std::optional<KeptSteps> asked = step_range_of(request.timeline_steps);
  if (!asked || request.timeline.empty()) {
    return "";
  }
  const int64_t steps = count_steps(steps_of(*rehearsal.run.result.journal, 0));
  if (asked->last < steps) {
    return "";
  }
  const std::string has =
      steps == 0 ? "takes no optimizer step" : fmt::format("ends with step {}", steps - 1);
  if (asked->first < steps || outcome_of(rehearsal) != Outcome::predicted) {
    answer.diagnostics +=
        fmt::format("note: the run {}, before step {} of --timeline-steps\n", has, asked->last);
    return "";
  }
  return fmt::format(
      "error: --timeline-steps {}: the run {}; no timeline is written\n   = {}\n",
      request.timeline_steps, has,
      steps == 0 ? "leave the option out" : "steps count from 0; name some that are there");
}

// Logs of such a run are not written.
std::string note_of_stop(const Rehearsal& rehearsal, const FileOfRun& file) {
  return rehearsal.run.undecided.empty() || file.option == "--logs"
             ? ""
             : fmt::format("note: {} {} shows this run until it was stopped: {}\n", file.option,
                           file.path, rehearsal.run.undecided);
}

}  // namespace

std::string option_of_one_case(const Request& request) {
  for (const auto& [option, path] : {std::pair("--timeline", &request.timeline),
                                     {"--logs", &request.files.logs},
                                     {"--report", &request.files.report},
                                     {"--plot", &request.files.plot}}) {
    if (!path->empty()) {
      return option;
    }
  }
  return "";
}

// What the run gave is reported, whatever becomes of the files.
void write_files_of_run(const Rehearsal& rehearsal, const Request& request,
                        const Deadline* deadline, Answer& answer) {
  if (!rehearsal.ran()) {
    return;
  }
  const std::string fault = fault_of_steps(rehearsal, request, answer);
  if (!fault.empty()) {
    answer.diagnostics += fault;
    answer.code = ExitCode::usage;
  }
  for (const FileOfRun& file : files_of(rehearsal, request, deadline)) {
    if (file.path.empty() || (file.option == "--timeline" && !fault.empty())) {
      continue;
    }
    try {
      answer.diagnostics += file.write();
      answer.diagnostics += note_of_stop(rehearsal, file);
    } catch (const OutputError& error) {
      answer.diagnostics += fmt::format("error: {}\n", error.what());
      answer.code = ExitCode::output_failed;
    } catch (const StoreError& error) {
      answer.diagnostics +=
          fmt::format("error: nothing written for {}: {}\n", file.option, error.what());
      answer.code = ExitCode::output_failed;
    }
  }
}

}  // namespace lockstep::cli
