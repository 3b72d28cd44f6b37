#include "rehearsal/findings/memory_remedy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/trainer/prepare/proposed_strategy.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

using Lines = std::vector<std::string>;

// Not what the scenario does already.
std::string further_ways(const OneRun& run) {
  const Network* const network = run.preparation.network.get();
  const bool recomputes = network != nullptr && !network->segments.empty();
  return recomputes ? "or use more GPUs" : "or recompute activations, or use more GPUs";
}

const std::map<DeviceId, DeviceMemory>& memory_of(const OneRun& run, const RankSet& ranks) {
  return run.result.memory[static_cast<size_t>(ranks.first())];
}

// Nothing of a batch is held where it ran out: what is held is there without any.
bool is_full_without_batch(const OneRun& run, const RankSet& ranks) {
  return std::ranges::all_of(memory_of(run, ranks), [](const auto& device) {
    const MemoryByPurpose& held = device.second.held_by_purpose;
    return is_off_device(device.first) || held[static_cast<size_t>(Purpose::activation)] +
                                                  held[static_cast<size_t>(Purpose::input)] ==
                                              Bytes{};
  });
}

bool no_batch_helps(const OneRun& run, const Finding& finding) {
  const LoaderSpec* loader = loader_of(run, "train");
  return (loader != nullptr && loader->batch_size && loader->batch_size->value == 1) ||
         is_full_without_batch(run, finding.ranks);
}

// Without an exchange there is nothing to divide gradients by: they stay whole.
Lines without_accumulation(const OneRun& run, const Finding& finding) {
  const Preparation& preparation = run.preparation;
  const StrategyEntry* const entry = strategies().find(preparation.registered_strategy);
  const int64_t batches =
      value_or(preparation.scenario->trainer->accumulate_grad_batches, int64_t{1});
  if (entry == nullptr || !entry->traits.accumulates_whole_gradients || batches <= 1) {
    return {};
  }
  Bytes gradients;
  for (const auto& [device, memory] : memory_of(run, finding.ranks)) {
    gradients += is_off_device(device)
                     ? Bytes{}
                     : memory.held_by_purpose[static_cast<size_t>(Purpose::gradient)];
  }
  return {fmt::format(
      "set accumulate_grad_batches: 1, with which each rank keeps its part of the gradients: all "
      "but the last of {} batches leave out their exchange (no_sync), and until then they stay "
      "whole ({} when memory ran out);",
      batches, bytes_text(gradients.count()))};
}

Lines families(const OneRun& run) {
  const Preparation& preparation = run.preparation;
  Lines divided;
  Lines offloaded;
  for (const StrategyEntry& entry : strategies().entries()) {
    for (const DividedState& choice : entry.divided) {
      (choice.offloads ? offloaded : divided)
          .push_back(
              proposed_strategy(entry, choice, *preparation.scenario, preparation.plan.deepspeed)
                  .text);
    }
  }
  return {
      fmt::format("no smaller batch helps: divide the model's state among ranks (strategy: {}),",
                  fmt::join(divided, ", ")),
      fmt::format("offload it to host memory ({}), {};", fmt::join(offloaded, ", "),
                  further_ways(run)),
      "`lockstep run` tries which of these fit, and `lockstep plan` which layouts"};
}

Lines tried(const OneRun& run, const Advice& advice) {
  if (advice.strategies.empty()) {
    return {fmt::format(
                "no smaller batch helps, and none of {} fits{}:", fmt::join(advice.too_large, ", "),
                advice.recomputing_too_large ? ", with activation_checkpointing: full either" : ""),
            "divide the layers, too (`lockstep plan` looks for layouts that fit), take GPUs with",
            fmt::format("more memory, {}",
                        advice.recomputing_too_large ? "or use more GPUs" : further_ways(run))};
  }
  Lines fitting;
  for (const Advice::Change& one : advice.strategies) {
    fitting.push_back(fmt::format("{} ({})", one.text, bytes_text(one.peak.count())));
  }
  return {
      fmt::format("no smaller batch helps; as strategy these fit: {};", fmt::join(fitting, ", ")),
      fmt::format("{}; `lockstep plan` compares layouts that divide layers", further_ways(run))};
}

Lines lower_batch(const OneRun& run) {
  return {
      fmt::format("lower batch_size, shard parameters or optimizer state, {}", further_ways(run))};
}

}  // namespace

void complete_memory_remedies(const OneRun& run, const Advice& advice,
                              std::vector<Finding>& findings) {
  const Scenario& scenario = *run.preparation.scenario;
  if (!scenario.trainer || !scenario.faults.empty() || run.preparation.placement.cpu) {
    return;
  }
  const bool was_tried = !advice.strategies.empty() || !advice.too_large.empty();
  for (Finding& finding : findings) {
    const bool on_device =
        finding.code == "LS401" && finding.level == Level::error && !finding.did.empty();
    if (!on_device) {
      continue;
    }
    finding.fix = without_accumulation(run, finding);
    const Lines others = was_tried                      ? tried(run, advice)
                         : no_batch_helps(run, finding) ? families(run)
                                                        : lower_batch(run);
    finding.fix.insert(finding.fix.end(), others.begin(), others.end());
  }
}

}  // namespace lockstep::cli
