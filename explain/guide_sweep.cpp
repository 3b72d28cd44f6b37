#include "explain/guide_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "rehearsal/jobs.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view plain = "ddp_";
constexpr std::string_view sharded = "sharded_";

std::optional<Time> step_time_of(const Rehearsal& rehearsal) {
  return rehearsal.ran() && rehearsal.why_no_prediction().empty()
             ? rehearsal.results.prediction.step_time
             : std::nullopt;
}

Bytes memory_of(const Rehearsal& rehearsal) {
  Bytes most{};
  for (const RankResults& rank : rehearsal.results.ranks.distinct()) {
    most = std::max(most, rank.memory.peak);
  }
  return most;
}

std::string cell(const std::optional<Time>& time) { return time ? time_text(time->count()) : "-"; }

std::string change(const SweptPair& pair) {
  if (!pair.step_time || !pair.sharded_step_time) {
    return "-";
  }
  const double ratio = static_cast<double>(pair.sharded_step_time->count()) /
                       static_cast<double>(pair.step_time->count());
  return fmt::format("{:+.0f} %", (ratio - 1) * 100);
}

}  // namespace

std::vector<SweptPair> sweep_of(std::string_view path, std::string_view text) {
  CaseSource source;
  source.path = path;
  source.reader = [text](const std::string&, size_t) -> std::variant<std::string, FileError> {
    return std::string(text);
  };
  Collected collected = collect(source);
  RehearseRequest request;
  request.explore = false;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  rehearse_all(collected.jobs, request, Judges::quantities, cores);
  std::vector<SweptPair> pairs;
  for (const Job& job : collected.jobs) {
    const std::string& name = job.scenario->name;
    if (!name.starts_with(plain)) {
      continue;
    }
    const std::string other = std::string(sharded) + name.substr(plain.size());
    const auto beside = std::ranges::find_if(
        collected.jobs, [&other](const Job& each) { return each.scenario->name == other; });
    if (beside == collected.jobs.end()) {
      continue;
    }
    SweptPair pair;
    pair.name = name.substr(plain.size());
    std::ranges::replace(pair.name, '_', ' ');
    const Preparation& preparation = job.result.run.preparation;
    pair.parameters = preparation.network ? preparation.network->parameter_elements() : 0;
    pair.devices = job.result.results.devices;
    pair.step_time = step_time_of(job.result);
    pair.sharded_step_time = step_time_of(beside->result);
    pair.memory = memory_of(job.result);
    pair.sharded_memory = memory_of(beside->result);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::string text_of(const std::vector<SweptPair>& pairs) {
  std::string out =
      fmt::format("  {:<26} {:>10} {:>5}  {:>10} {:>12} {:>8}  {:>10} {:>12}\n", "predicted now",
                  "parameters", "GPUs", "ddp", "ddp_sharded", "", "ddp", "ddp_sharded");
  for (const SweptPair& pair : pairs) {
    out += fmt::format("  {:<26} {:>10} {:>5}  {:>10} {:>12} {:>8}  {:>10} {:>12}\n", pair.name,
                       count_text(pair.parameters), pair.devices, cell(pair.step_time),
                       cell(pair.sharded_step_time), change(pair), bytes_text(pair.memory.count()),
                       bytes_text(pair.sharded_memory.count()));
  }
  return out + "  left: time of a step; right: memory of the fullest GPU\n";
}

}  // namespace lockstep::cli
