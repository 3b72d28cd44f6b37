#include "rehearsal/findings/divided_batch.hpp"

#include <algorithm>
#include <set>

namespace lockstep::cli {

namespace {

bool has_batch_norm(const OneRun& run) {
  const Network* network = run.preparation.network.get();
  return network != nullptr && std::ranges::any_of(network->layers, [](const Layer& layer) {
           return layer.kind == LayerKind::batch_norm;
         });
}

/// The loss compares samples, but not those of different ranks or devices.
bool compares_parts(const OneRun& run) {
  const Network* network = run.preparation.network.get();
  const auto compares = [&run](const Layer& loss) {
    return compares_samples(loss.kind) &&
           (run.preparation.placement.traits.drives_all_devices()
                ? !run.preparation.plan.loss_of_whole_batch || run.result.ends.size() > 1
                : !std::get<LossArguments>(loss.arguments).gathers_samples);
  };
  return network != nullptr &&
         (compares(network->loss) || std::ranges::any_of(network->modules, [&](const auto& module) {
            return compares(module.loss);
          }));
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
  rule.splits_comparison = compares_parts(run);
}

}  // namespace lockstep::cli
