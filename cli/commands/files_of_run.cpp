#include "cli/commands/files_of_run.hpp"

#include <fmt/format.h>

#include <functional>

#include "cli/render/logs/write_logs.hpp"
#include "cli/render/report/report_page.hpp"
#include "cli/render/timeline/timeline.hpp"
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
  for (const FileOfRun& file : files_of(rehearsal, request, deadline)) {
    if (file.path.empty()) {
      continue;
    }
    try {
      answer.diagnostics += file.write();
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
