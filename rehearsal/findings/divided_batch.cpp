#include "rehearsal/findings/divided_batch.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace lockstep::cli {

namespace {

bool has_batch_norm(const OneRun& run) {
  const Network* network = run.preparation.network.get();
  return network != nullptr && std::ranges::any_of(network->layers, [](const Layer& layer) {
           return layer.kind == LayerKind::batch_norm;
         });
}

bool has_loss_of(const Network& network, const std::function<bool(const Layer& loss)>& is_such) {
  return is_such(network.loss) || std::ranges::any_of(network.modules, [&](const auto& module) {
           return is_such(module.loss);
         });
}

EqualityRule::Compares compared_samples(const OneRun& run) {
  using Compares = EqualityRule::Compares;
  const Network* network = run.preparation.network.get();
  const auto compares = [](const Layer& loss) { return compares_samples(loss.kind); };
  if (network == nullptr || !has_loss_of(*network, compares)) {
    return Compares::all;
  }
  if (!run.preparation.placement.traits.drives_all_devices()) {
    const bool splits = has_loss_of(*network, [&](const Layer& loss) {
      return compares(loss) && !std::get<LossArguments>(loss.arguments).gathers_samples;
    });
    return splits ? Compares::of_rank : Compares::all;
  }
  const bool several_nodes = run.result.ends.size() > 1;
  if (run.preparation.plan.loss_of_whole_batch) {
    return several_nodes ? Compares::of_node : Compares::all;
  }
  return several_nodes ? Compares::of_device_of_node : Compares::of_device;
}

bool has_uneven_samples(const OneRun& run) {
  std::set<int64_t> counts;
  for (const RankLog& rank : run.preparation.log->ranks) {
    int64_t count = 0;
    for (const SampleUse& use : rank.samples) {
      count += use.stage == "train" ? use.samples.size() : 0;
    }
    if (rank.runs_trainer) {
      counts.insert(count);
    }
  }
  return counts.size() > 1;
}

}  // namespace

void tell_what_is_divided(const OneRun& run, EqualityRule& rule) {
  rule.uneven_samples = has_uneven_samples(run);
  rule.splits_statistics = has_batch_norm(run) && !run.preparation.plan.synchronises_batch_norm;
  const StrategyTraits& traits = run.preparation.placement.traits;
  rule.may_share_statistics =
      traits.statistics == StatisticsSharing::converts && !traits.drives_all_devices();
  rule.micro_batches = run.preparation.batch_size_multiple;
  rule.compares = compared_samples(run);
}

}  // namespace lockstep::cli
