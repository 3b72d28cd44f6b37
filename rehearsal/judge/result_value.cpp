#include "rehearsal/judge/result_value.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/findings/compiled_graphs.hpp"
#include "rehearsal/findings/logger_keys.hpp"
#include "rehearsal/findings/staleness.hpp"
#include "rehearsal/findings/weight_spread.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/measure/device_use.hpp"

namespace lockstep::cli {

namespace {

using Found = std::variant<Value, NoValue>;

constexpr const char* no_range =
    "there is no range: it needs a calibration, and runs that come to their end";

template <class T>
Found some(const std::optional<T>& value, const char* reason) {
  return value ? Found(Value(*value)) : Found(NoValue{reason});
}

Found breakdown_value(const std::string& part, const Breakdown& parts) {
  if (part == "compute") return Value(parts.compute);
  if (part == "exposed_communication") return Value(parts.exposed_communication);
  if (part == "data") return Value(parts.data);
  if (part == "optimizer") return Value(parts.optimizer);
  if (part == "host") return Value(parts.host);
  if (part == "offload") return Value(parts.offload);
  if (part == "drive") return Value(parts.drive);
  return Value(parts.idle);
}

Found memory_value(const std::string& part, const RankResults& rank) {
  if (part == "peak") {
    return Value(rank.memory.peak);
  }
  if (part == "context") {
    return Value(rank.reserve);
  }
  if (part == "host") {
    return Value(rank.host_peak);
  }
  if (part == "drive") {
    return Value(rank.drive_peak);
  }
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    if (part == name_of(static_cast<Purpose>(purpose))) {
      return Value(rank.memory.peak_by_purpose[static_cast<size_t>(purpose)]);
    }
  }
  return NoValue{"no memory is accounted under this name"};
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names = {"total"};
  for (int kind = 0; kind < op_kind_count; ++kind) {
    const auto operation = static_cast<OpKind>(kind);
    if (is_communication(operation) || operation == OpKind::copy) {
      names.emplace_back(name_of(static_cast<OpKind>(kind)));
    }
  }
  return names;
}

Found transfer_value(const ResultName& name, const RankResults& rank) {
  int64_t count = 0;
  int64_t bytes = 0;
  for (const Transfer& movement : rank.movements) {
    if (movement.label == name.key) {
      return name.name == "transfers.bytes" ? Found(Value(movement.bytes))
                                            : Found(Value(movement.count));
    }
  }
  const std::vector<std::string> known = operation_names();
  if (std::find(known.begin(), known.end(), name.key) == known.end()) {
    return NoValue{"the strategy has no transfers of this name"};
  }
  for (const TransferCount& transfer : rank.transfers) {
    if (name.key == "total" || name.key == name_of(transfer.kind)) {
      count += transfer.count;
      bytes += transfer.bytes;
    }
  }
  return name.name == "transfers.bytes" ? Found(Value(Bytes(bytes))) : Found(Value(count));
}

Found metric_value(const ResultName& name, const Rehearsal& rehearsal, int32_t rank) {
  const auto& metrics = rehearsal.run.preparation.log->ranks[static_cast<size_t>(rank)].metrics;
  const auto found = metrics.find(name.key);
  if (found != metrics.end() && is_of_stand_in(rehearsal.logged, name.key)) {
    return NoValue{"losses of this model are not computed", true};
  }
  if (found != metrics.end()) {
    return Value(found->second);
  }
  return NoValue{
      fmt::format("this rank logged no `{}`{}", name.key, rehearsal.hung ? ": the run hangs" : "")};
}

// trainer.checkpoint_callback is the first of them.
Found best_checkpoint(const Rehearsal& rehearsal, int32_t rank) {
  const ByRank<RankLog>& ranks = rehearsal.run.preparation.log->ranks;
  const std::vector<CheckpointLog>& checkpoints = ranks[static_cast<size_t>(rank)].checkpoints;
  if (checkpoints.empty()) {
    return NoValue{"there is no ModelCheckpoint"};
  }
  if (checkpoints.front().best.empty()) {
    return NoValue{"this rank saved no checkpoint"};
  }
  return Value(checkpoints.front().best);
}

Found range_value(const std::string& name, const Prediction& prediction) {
  if (!prediction.total_time_low) {
    return NoValue{no_range, true};
  }
  const char* no_step = "there was no optimizer step";
  if (name == "step_time.low") return some(prediction.step_time_low, no_step);
  if (name == "step_time.high") return some(prediction.step_time_high, no_step);
  return Value(name == "total_time.low" ? *prediction.total_time_low : *prediction.total_time_high);
}

Found prediction_value(const std::string& name, const Prediction& prediction) {
  const char* no_step = "there was no optimizer step";
  if (name == "step_time") return some(prediction.step_time, no_step);
  if (name.ends_with(".low") || name.ends_with(".high")) return range_value(name, prediction);
  if (name == "total_time") return Value(prediction.total_time);
  if (name == "steps") return Value(prediction.steps);
  if (name == "throughput") return some(prediction.samples_per_s, no_step);
  if (name == "tokens_per_s") return some(prediction.tokens_per_s, "the model takes no tokens");
  if (name == "mfu") {
    return some(prediction.mfu, prediction.implausible_mfu ? "it came out above 1" : no_step);
  }
  if (name == "bubble") return some(prediction.bubble, "there is no pipeline");
  if (name == "gpu_utilization") {
    const Breakdown& parts = prediction.breakdown;
    const Time span = parts.whole();
    return span > Time{} ? Found(Value(seconds(parts.busy) / seconds(span)))
                         : Found(NoValue{"nothing took time"});
  }
  return NoValue{"no run gives it", true};
}

// The GPUs of each node that train, as CUDA numbers them; without GPUs the processes.
Found device_list(const Rehearsal& rehearsal) {
  const Placement& placement = rehearsal.run.preparation.placement;
  if (placement.devices.empty()) {
    return NoValue{"the program has no trainer that takes devices"};
  }
  List list;
  for (const int64_t device : placement.numbers.empty() ? placement.devices : placement.numbers) {
    list.emplace_back(device);
  }
  return Value(std::move(list));
}

Found spread_value(const std::string& name, const Rehearsal& rehearsal) {
  const std::optional<WeightSpread> spread = weight_spread(rehearsal.run);
  if (!spread) {
    return NoValue{"replicas do not differ by design, or their values are not computed"};
  }
  if (name == "weights.apart") {
    return Value(spread->apart);
  }
  if (is_real(rehearsal.world)) {
    return NoValue{"what ranks hold after each step is seen in a simulation alone", true};
  }
  const auto& greatest = rehearsal.run.weight_spreads.greatest;
  return greatest ? Found(Value(greatest->apart)) : NoValue{"no step was taken by all ranks"};
}

Found staleness_value(const std::string& name, const Rehearsal& rehearsal) {
  const std::optional<Staleness> staleness = staleness_of(rehearsal.run);
  if (!staleness || staleness->pushes == 0) {
    return NoValue{staleness ? "no gradient made an update"
                             : "the run has no server and no asynchronous pipeline"};
  }
  return name == "staleness.mean" ? Found(Value(staleness->mean())) : Found(Value(staleness->most));
}

Found compiled_graph_count(const Rehearsal& rehearsal) {
  const auto graphs = std::ssize(compiled_graphs(rehearsal.run));
  return graphs == 0 ? Found(NoValue{"nothing is compiled: no TPU trains"})
                     : Found(Value(int64_t{graphs}));
}

// What is expected at a failure rate; without one, of the faults of this run.
Found goodput_value(const Results& results) {
  if (!results.elastic) {
    return NoValue{
        "the launcher starts no rank again: write launcher: {torchrun: {max_restarts: 3, "
        "nproc_per_node: 8}}"};
  }
  const ElasticResults& elastic = *results.elastic;
  if (elastic.forecast) {
    return Value(elastic.forecast->goodput);
  }
  return elastic.wall() > Time{} ? Found(Value(seconds(elastic.useful()) / seconds(elastic.wall())))
                                 : Found(NoValue{"nothing took time"});
}

Found cost_value(const std::string& name, const Rehearsal& rehearsal) {
  const std::optional<Cost> cost = cost_of(rehearsal);
  if (!cost) {
    return NoValue{why_no_cost(rehearsal)};
  }
  if (name == "cost.currency") {
    return Value(cost->currency);
  }
  return name == "cost.total" ? Found(Value(cost->total))
                              : some(cost->per_million_samples, "no samples are trained");
}

Found configuration_value(const std::string& name, const Rehearsal& rehearsal) {
  const Results& results = rehearsal.results;
  if (name == "world_size") {
    return Value(int64_t{rehearsal.run.preparation.options.world_size});
  }
  if (name == "devices") return Value(results.devices);
  if (name == "device_list") return device_list(rehearsal);
  if (name == "strategy") return Value(results.strategy);
  if (name == "restarts") return Value(results.elastic ? results.elastic->restarts() : 0);
  if (name == "goodput") return goodput_value(results);
  if (name == "effective_batch_size") {
    return some(results.effective_batch_size, "ranks have batches of their own");
  }
  if (name == "device_batch_size") {
    return some(results.device_batch_size, "ranks have batches of their own");
  }
  if (name == "learning_rate") return some(results.learning_rate, "nothing is trained");
  if (name == "samples_repeated") return some(results.samples_repeated, "no samples were counted");
  if (name == "samples_missed") return some(results.samples_missed, "no samples were counted");
  return NoValue{"no run gives it", true};
}

bool is_time(const ResultName& name) {
  return is_quantity(name) && !name.name.starts_with("memory.") &&
         !name.name.starts_with("transfers");
}

}  // namespace

std::vector<std::string> transfer_names(const Results& results) {
  std::vector<std::string> names = operation_names();
  for (const RankResults& rank : results.ranks) {
    for (const Transfer& movement : rank.movements) {
      if (std::find(names.begin(), names.end(), movement.label) == names.end()) {
        names.push_back(movement.label);
      }
    }
  }
  return names;
}

bool differs_by_rank(const ResultName& name) {
  return name.name == "metric" || name.name == "single_device" ||
         name.name.starts_with("memory.") || name.name.starts_with("transfers") ||
         name.name.starts_with("checkpoint.");
}

bool is_quantity(const ResultName& name) {
  return name.name.starts_with("step_time") || name.name.starts_with("total_time") ||
         name.name == "throughput" || name.name == "tokens_per_s" || name.name == "mfu" ||
         name.name == "gpu_utilization" || name.name == "bubble" ||
         name.name.starts_with("breakdown.") || name.name.starts_with("memory.") ||
         name.name.starts_with("transfers") || name.name.starts_with("cost.");
}

// What updates were made of, and what they did to the weights of ranks.
std::optional<Found> value_of_updates(const std::string& text, const Rehearsal& rehearsal) {
  const bool has_pipeline = !rehearsal.run.preparation.pipeline_ranks.empty();
  if (text.starts_with("staleness.") && is_real(rehearsal.world) && !has_pipeline) {
    return NoValue{"the order of messages on one machine says nothing about a cluster", true};
  }
  if (text.starts_with("staleness.")) {
    return staleness_value(text, rehearsal);
  }
  if (text.starts_with("weights.")) {
    return spread_value(text, rehearsal);
  }
  return text == "compiled_graphs" ? std::optional(compiled_graph_count(rehearsal)) : std::nullopt;
}

Found value_of(const ResultName& name, const Rehearsal& rehearsal, int32_t rank) {
  if (!rehearsal.run.ran) {
    return NoValue{"the case did not run"};
  }
  if (const std::string why_not = rehearsal.why_no_prediction();
      !why_not.empty() && (is_time(name) || rehearsal.run.result.hung) && is_quantity(name)) {
    return NoValue{why_not};
  }
  if (is_real(rehearsal.world) && is_time(name)) {
    return NoValue{"times of ranks on one machine say nothing about a cluster", true};
  }
  const Results& results = rehearsal.results;
  if (static_cast<size_t>(rank) >= results.ranks.size()) {
    return NoValue{fmt::format("there is no rank {}", rank)};
  }
  const RankResults& own = results.ranks[static_cast<size_t>(rank)];
  const std::string& text = name.name;
  if (text == "metric") {
    return metric_value(name, rehearsal, rank);
  }
  if (text == "checkpoint.best") {
    return best_checkpoint(rehearsal, rank);
  }
  if (text == "checkpoint.bytes") {
    return own.checkpoint_bytes ? Found(own.checkpoint_bytes->of(rank))
                                : NoValue{"this rank saved no checkpoint"};
  }
  if (const std::optional<Found> found = value_of_updates(text, rehearsal)) {
    return *found;
  }
  if (text.starts_with("breakdown.")) {
    return breakdown_value(text.substr(text.find('.') + 1), results.prediction.breakdown);
  }
  if (text.starts_with("memory.")) {
    return memory_value(text.substr(text.find('.') + 1), own);
  }
  if (text.starts_with("transfers")) {
    return transfer_value(name, own);
  }
  if (text.starts_with("cost.")) {
    return cost_value(text, rehearsal);
  }
  if (text == "gpu_utilization") {
    if (const std::vector<DeviceUse> devices = device_use(rehearsal.run); !devices.empty()) {
      return Value(busy_share(devices));
    }
  }
  if (is_quantity(name) || text == "steps") {
    return prediction_value(text, results.prediction);
  }
  return configuration_value(text, rehearsal);
}

}  // namespace lockstep::cli
