#include "cli/input_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/render/logs/write_logs.hpp"
#include "rehearsal/run/calibrated.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct Output {
  std::string option;
  std::string path;
};

std::vector<Output> outputs_of(const Request& request) {
  std::vector<Output> outputs = {{"-o", request.output},         {"--timeline", request.timeline},
                                 {"--junit", request.junit},     {"--report", request.files.report},
                                 {"--plot", request.files.plot}, {"--plot", request.sweep.plot},
                                 {"--out", request.sweep.rows}};
  std::erase_if(outputs, [](const Output& output) { return output.path.empty(); });
  if (!request.files.logs.empty()) {
    for (const std::string& file : log_files(request.files.logs)) {
      outputs.push_back({"--logs", file});
    }
  }
  return outputs;
}

// A link to a file, and a second name of it, are that file. A file that does not exist has a name
// only.
bool is_same_file(const std::string& left, const std::string& right) {
  std::error_code error;
  if (fs::equivalent(left, right, error) && !error) {
    return true;
  }
  const fs::path one = fs::weakly_canonical(left, error);
  const fs::path other = error ? fs::path() : fs::weakly_canonical(right, error);
  return !error && one == other;
}

void refuse_over(const Request& request, const std::string& input, const std::string& what) {
  for (const Output& output : outputs_of(request)) {
    if (is_same_file(output.path, input)) {
      throw OutputError(fmt::format("cannot write {} ({}): it is {}{}\n   = name another file",
                                    output.path, output.option, what,
                                    output.path == input ? "" : ", " + input));
    }
  }
}

}  // namespace

void check_writable(const Request& request) {
  std::vector<std::string> paths = {request.accuracy.plot, request.accuracy.page};
  for (const Output& output : outputs_of(request)) {
    paths.push_back(output.path);
  }
  if (const std::string& folder = request.files.logs; !folder.empty()) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!fs::is_directory(folder, error)) {
      throw OutputError(fmt::format(
          "cannot write into {} (--logs): it is no folder, and cannot be made\n   = name another "
          "folder, or make it",
          folder));
    }
  }
  for (const std::string& path : paths) {
    if (!path.empty()) {
      check_writable(path);
    }
  }
}

void check_outputs(const Request& request) {
  const std::vector<Output> outputs = outputs_of(request);
  for (size_t index = 1; index < outputs.size(); ++index) {
    for (size_t before = 0; before < index; ++before) {
      if (is_same_file(outputs[index].path, outputs[before].path)) {
        throw OutputError(
            fmt::format("cannot write {}: {} and {} name the same file\n"
                        "   = name another file for one of them",
                        outputs[index].path, outputs[before].option, outputs[index].option));
      }
    }
  }
  const bool reads_files = request.command != "explain" || request.environment;
  for (const std::string& argument : request.arguments) {
    const CaseSource source = split_case(argument);
    std::error_code error;
    if (reads_files && fs::is_regular_file(source.path, error)) {
      refuse_over(request, source.path, request.sweep.merge ? "a file to merge" : "the scenario");
    }
  }
  if (!request.sweep.vary_file.empty()) {
    refuse_over(request, request.sweep.vary_file, "the list of cases");
  }
  if (!request.calibration.empty()) {
    refuse_over(request, request.calibration, "the calibration");
  }
  if (const CollectiveRequest& collective = request.collective; request.command == "collective") {
    const std::string scenario = split_case(collective.cluster).path;
    if (!collective.against.empty()) {
      refuse_over(request, collective.against, "the measurements");
    }
    std::error_code error;
    if (fs::is_regular_file(scenario, error)) {
      refuse_over(request, scenario, "the scenario");
    }
  }
  if (!request.reports.empty() && !outputs.empty()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(request.reports, error)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".report" || kind == ".journal") {
        refuse_over(request, entry.path().string(), "what a rank left");
      }
    }
  }
}

void check_outputs(const Request& request, const Collected& inputs) {
  for (const std::string& file : inputs.files) {
    refuse_over(request, file, "a file that the scenario reads");
  }
  for (const Job& job : inputs.jobs) {
    if (const std::string file = calibration_file(*job.scenario); !file.empty()) {
      refuse_over(request, file, "the calibration of the scenario");
    }
  }
}

}  // namespace lockstep::cli
