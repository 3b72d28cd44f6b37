#include "rehearsal/findings/memory_remedy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/prepare/proposed_strategy.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr const char* recompute = "or recompute activations, or use more GPUs";

// Nothing of a batch is held where it ran out: what is held is there without any.
bool is_full_without_batch(const OneRun& run, const RankSet& ranks) {
  const auto& devices = run.result.memory[static_cast<size_t>(ranks.first())];
  return std::ranges::all_of(devices, [](const auto& device) {
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

Lines families(const Preparation& preparation) {
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
      fmt::format("offload it to host memory ({}), {};", fmt::join(offloaded, ", "), recompute),
      "`lockstep run` tries which of these fit"};
}

Lines tried(const Advice& advice) {
  if (advice.strategies.empty()) {
    return {fmt::format("no smaller batch helps, and none of {} fits:",
                        fmt::join(advice.too_large, ", ")),
            "use more GPUs or GPUs with more memory, or recompute activations"};
  }
  Lines fitting;
  for (const Advice::Change& one : advice.strategies) {
    fitting.push_back(fmt::format("{} ({})", one.text, bytes_text(one.peak.count())));
  }
  return {
      fmt::format("no smaller batch helps; as strategy these fit: {};", fmt::join(fitting, ", ")),
      recompute};
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
    if (on_device && (was_tried || no_batch_helps(run, finding))) {
      finding.fix = was_tried ? tried(advice) : families(run.preparation);
    }
  }
}

}  // namespace lockstep::cli
