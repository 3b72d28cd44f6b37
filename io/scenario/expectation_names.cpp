#include "io/scenario/expectation_names.hpp"

#include <algorithm>

#include "io/scenario/spelling.hpp"

namespace lockstep {
namespace {

constexpr std::string_view transfers = "transfers.";

bool is_known(std::string_view name) {
  const auto& names = result_names();
  return std::find(names.begin(), names.end(), name) != names.end() || name == "single_device";
}

}  // namespace

const std::vector<std::string_view>& result_names() {
  static const std::vector<std::string_view> names = {
      "step_time",
      "step_time.low",
      "step_time.high",
      "total_time",
      "total_time.low",
      "total_time.high",
      "throughput",
      "tokens_per_s",
      "mfu",
      "gpu_utilization",
      "bubble",
      "breakdown.compute",
      "breakdown.exposed_communication",
      "breakdown.data",
      "breakdown.optimizer",
      "breakdown.host",
      "breakdown.idle",
      "memory.peak",
      "memory.parameter",
      "memory.gradient",
      "memory.optimizer_state",
      "memory.activation",
      "memory.communication",
      "memory.workspace",
      "world_size",
      "devices",
      "strategy",
      "steps",
      "effective_batch_size",
      "device_batch_size",
      "learning_rate",
      "restarts",
      "samples_repeated",
      "samples_missed",
      "checkpoint.best",
  };
  return names;
}

ResultName split_result_name(const std::string& name) {
  ResultName result;
  result.placeholder = name;
  std::string_view rest = name;
  const auto own = [](std::string_view text) {
    return is_known(text) || text.starts_with(transfers);
  };
  if (!own(rest)) {
    const size_t dot = rest.find('.');
    if (dot != std::string_view::npos && own(rest.substr(dot + 1))) {
      result.scenario_case = std::string(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
    }
  }
  if (!rest.starts_with(transfers)) {
    result.name = std::string(rest);
    return result;
  }
  constexpr std::string_view bytes = ".bytes";
  std::string_view key = rest.substr(transfers.size());
  result.name = key.ends_with(bytes) ? "transfers.bytes" : "transfers";
  if (key.ends_with(bytes)) {
    key.remove_suffix(bytes.size());
  }
  result.key = std::string(key);
  return result;
}

std::string remedy_for_result_name(const ResultName& result) {
  if (result.name == "transfers" || result.name == "transfers.bytes") {
    return result.key.empty() ? "write transfers.all_reduce" : "";
  }
  return is_known(result.name) ? "" : spelling_remedy(result.name, result_names());
}

}  // namespace lockstep
