#include "cli/commands/case_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/render/json.hpp"

namespace lockstep::cli {

CaseSource source_of(const Request& request, const std::string& argument) {
  CaseSource source = split_case(argument);
  source.set = request.set;
  if (request.seed) {
    source.set.push_back(fmt::format("seed_everything={}", *request.seed));
    source.option_of_key["seed_everything"] = "--seed";
  }
  if (request.all_steps) {
    source.set.emplace_back("verify.all_steps=true");
    source.option_of_key["verify.all_steps"] = "--all-steps";
  }
  if (!request.calibration.empty()) {
    source.set.push_back("cluster.calibration=" + Json(request.calibration).dump());
    source.option_of_key["cluster.calibration"] = "--calibration";
  }
  return source;
}

Answer bad_input(const Request& request, const Collected& collected) {
  Answer answer;
  answer.code = ExitCode::bad_input;
  answer.diagnostics = render(collected.diagnostics, collected.sources);
  if (request.format == Format::json) {
    const std::string file = request.arguments.empty() ? "" : request.arguments.front();
    answer.text =
        text_of(report_json({json_of(collected.diagnostics, file, request)}, request, answer.code));
  }
  return answer;
}

void mark_interrupted(Answer& answer, const Deadline& deadline) {
  if (deadline.interrupted()) {
    answer.diagnostics += "interrupted: the result is partial\n";
    answer.code = ExitCode::interrupted;
  }
}

int threads_of(const Request& request) {
  if (is_real(request.world)) {
    return 1;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return request.jobs > 0 ? request.jobs : static_cast<int>(cores);
}

}  // namespace lockstep::cli
