// `accuracy`: published throughputs beside what is predicted of them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/render/accuracy/accuracy_view.hpp"
#include "io/table/throughput_table.hpp"
#include "rehearsal/accuracy/accuracy_errors.hpp"
#include "rehearsal/progress.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

/// Ends the command with an error and its remedy.
struct AccuracyRefused {
  std::string message;
  std::string remedy;
};

std::vector<std::string> throughput_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (!std::filesystem::is_directory(argument, error)) {
      files.push_back(argument);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(argument, error)) {
      if (entry.path().extension() == ".csv") {
        found.push_back(entry.path().string());
      }
    }
    if (error || found.empty()) {
      throw AccuracyRefused{fmt::format("{}: the folder holds no .csv file", argument),
                            "name a folder of measurements, such as data/throughput"};
    }
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

Answer accuracy_command(const Request& request, const Style& style) {
  try {
    AccuracyView view;
    const std::vector<std::string> folders =
        request.arguments.empty() ? std::vector<std::string>{"data/throughput"} : request.arguments;
    for (const std::string& file : throughput_files(folders)) {
      ThroughputTable table = read_throughput_table(file);
      if (!table.diagnostics.empty()) {
        return {"", render(table.diagnostics, table.lines), ExitCode::bad_input};
      }
      std::ranges::move(table.rows, std::back_inserter(view.measured));
    }
    const AccuracyRequest& asked = request.accuracy;
    if (!asked.row.empty()) {
      std::erase_if(view.measured, [&](const ThroughputRow& row) { return row.id() != asked.row; });
      if (view.measured.empty()) {
        throw AccuracyRefused{fmt::format("no row has the row_id `{}`", asked.row),
                              "--format csv lists all rows"};
      }
      const RowScenario scenario = scenario_of(view.measured.front());
      return scenario.yaml.empty()
                 ? Answer{"", fmt::format("error: {}: {}\n", asked.row, scenario.why_not),
                          ExitCode::missing_capability}
                 : Answer{scenario.yaml, "", ExitCode::ok};
    }
    const int threads = request.jobs > 0
                            ? request.jobs
                            : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    Progress progress(request.progress || style.progress);
    view.rows = predict_rows(view.measured, asked.software, Deadline(request.time_limit_s), threads,
                             &progress);
    progress.end();
    if (!asked.plot.empty()) {
      write_atomically(asked.plot, accuracy_plot(view));
    }
    if (!asked.page.empty()) {
      write_atomically(asked.page, accuracy_page(view));
    }
    return {request.format == Format::json  ? accuracy_json(view)
            : request.format == Format::csv ? accuracy_csv(view)
                                            : accuracy_text(view),
            "", ExitCode::ok};
  } catch (const AccuracyRefused& refused) {
    return {"", fmt::format("error: {}\n   = {}\n", refused.message, refused.remedy),
            ExitCode::usage};
  }
}

}  // namespace lockstep::cli
