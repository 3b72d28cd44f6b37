#include "io/scenario/expectations/expectation_names.hpp"

#include <algorithm>

#include "io/scenario/names/spelling.hpp"

namespace lockstep {
namespace {

constexpr std::string_view transfers = "transfers.";

bool is_known(std::string_view name) {
  const auto& names = result_names();
  return std::find(names.begin(), names.end(), name) != names.end() || name == "single_device";
}

enum class ResultType : uint8_t { time, bytes, whole, number, text, list };

ResultType type_of_result(std::string_view name) {
  if (name.starts_with("step_time") || name.starts_with("total_time") ||
      name.starts_with("breakdown.")) {
    return ResultType::time;
  }
  if (name.starts_with("memory.") || name == "transfers.bytes" || name == "checkpoint.bytes") {
    return ResultType::bytes;
  }
  if (name == "strategy" || name == "checkpoint.best" || name == "cost.currency") {
    return ResultType::text;
  }
  if (name == "device_list") {
    return ResultType::list;
  }
  constexpr std::string_view numbers[] = {"throughput",
                                          "tokens_per_s",
                                          "mfu",
                                          "gpu_utilization",
                                          "bubble",
                                          "learning_rate",
                                          "metric",
                                          "single_device",
                                          "staleness.mean",
                                          "goodput",
                                          "cost.total",
                                          "cost.per_million_samples",
                                          "weights.apart",
                                          "weights.furthest_apart"};
  const bool number = std::find(std::begin(numbers), std::end(numbers), name) != std::end(numbers);
  return number ? ResultType::number : ResultType::whole;
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
      "breakdown.offload",
      "breakdown.drive",
      "breakdown.idle",
      "memory.peak",
      "memory.parameter",
      "memory.gradient",
      "memory.optimizer_state",
      "memory.activation",
      "memory.communication",
      "memory.workspace",
      "memory.gathered",
      "memory.host",
      "memory.drive",
      "memory.context",
      "world_size",
      "devices",
      "strategy",
      "steps",
      "effective_batch_size",
      "device_batch_size",
      "learning_rate",
      "restarts",
      "goodput",
      "samples_repeated",
      "samples_missed",
      "checkpoint.best",
      "checkpoint.bytes",
      "staleness.mean",
      "staleness.max",
      "weights.apart",
      "weights.furthest_apart",
      "compiled_graphs",
      "cost.total",
      "cost.per_million_samples",
      "cost.currency",
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

Value stand_in_of(std::string_view name, int64_t index) {
  // Values that no scenario would write, nor any difference of two of them.
  const int64_t number = 10'007 * (index + 1) + 13 * index * index;
  switch (type_of_result(name)) {
    case ResultType::time: return Value(Time(number * picoseconds_per_second));
    case ResultType::bytes: return Value(Bytes(number << 20));
    case ResultType::whole: return Value(number);
    case ResultType::number: return Value(static_cast<double>(number) + 0.25);
    case ResultType::text: return Value("text");
    case ResultType::list: return Value(List{Value(number)});
  }
  return {};
}

std::string_view type_phrase_of(std::string_view name) {
  switch (type_of_result(name)) {
    case ResultType::time: return "a time, such as 400 ms";
    case ResultType::bytes: return "a size, such as 16 GiB";
    case ResultType::whole: return "a whole number, such as 8";
    case ResultType::number: return "a number, such as 0.5";
    case ResultType::text: return "a text, such as 'ddp'";
    case ResultType::list: return "a list, such as [0, 1]";
  }
  return "";
}

}  // namespace lockstep
