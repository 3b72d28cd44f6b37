#include "rehearsal/measure/strategy_advice.hpp"

#include <algorithm>
#include <utility>

#include "model/trainer/prepare/proposed_strategy.hpp"

namespace lockstep::cli {

namespace {

bool ran_out_on_device(const OneRun& run) {
  return std::ranges::any_of(run.result.ends, [](const RankEnd& end) { return end.out_of_memory; });
}

// The same on GPUs that have no end.
void find_needed_memory(Prober& prober, Advice& advice) {
  if (!ran_out_on_device(prober.rehearsal().run) || !prober.affordable()) {
    return;
  }
  Scenario variant = prober.base();
  ClusterSpec cluster = variant.cluster.value_or(ClusterSpec{});
  GpuSpec gpu = cluster.gpu.value_or(GpuSpec{});
  gpu.memory = Placed<Bytes>{Bytes(int64_t{1} << 50), {}};
  cluster.gpu = gpu;
  variant.cluster = cluster;
  const Probe short_run = prober.probe(variant);
  if (short_run.results) {
    advice.needed = peak_of(*short_run.results);
  }
}

// With each strategy that divides or offloads the model's state.
std::vector<Variant> divided_variants(const Prober& prober) {
  const Preparation& preparation = prober.rehearsal().run.preparation;
  const Scenario& scenario = *preparation.scenario;
  const std::optional<Object>& own = scenario.trainer->strategy;
  std::vector<Variant> variants;
  for (const StrategyEntry& entry : strategies().entries()) {
    for (const DividedState& choice : entry.divided) {
      const ProposedStrategy proposed =
          proposed_strategy(entry, choice, scenario, preparation.plan.deepspeed);
      const Object& strategy = proposed.strategy;
      if (own && own->name == strategy.name && own->arguments.size() == strategy.arguments.size()) {
        continue;
      }
      variants.push_back({proposed.text, prober.base()});
      proposed.apply_to(variants.back().scenario);
    }
  }
  return variants;
}

void probe_strategies(Prober& prober, const std::vector<Variant>& variants, Advice& advice) {
  prober.probe_each(variants, [&advice](const Variant& variant, const Probe& short_run) {
    if (fits(short_run) && short_run.results->prediction.samples_per_s) {
      const Prediction& prediction = short_run.results->prediction;
      advice.strategies.push_back({variant.text, *prediction.step_time, *prediction.samples_per_s,
                                   peak_of(*short_run.results)});
    } else if (short_run.failure.empty()) {
      advice.too_large.push_back(variant.text);
    }
  });
}

bool may_recompute(const OneRun& run) {
  const Network* const network = run.preparation.network.get();
  return network != nullptr && network->segments.empty();
}

}  // namespace

void try_strategies(Prober& prober, Advice& advice) {
  find_needed_memory(prober, advice);
  std::vector<Variant> variants = divided_variants(prober);
  probe_strategies(prober, variants, advice);
  if (!advice.strategies.empty() || !may_recompute(prober.rehearsal().run)) {
    return;
  }
  for (Variant& variant : variants) {
    const bool has_more = variant.text.find(" with ") != std::string::npos;
    variant.text +=
        has_more ? " and activation_checkpointing: full" : " with activation_checkpointing: full";
    variant.scenario.model->activation_checkpointing =
        Placed<ActivationCheckpointing>{ActivationCheckpointing::full, {}};
  }
  Advice recomputing;
  probe_strategies(prober, variants, recomputing);
  advice.strategies = std::move(recomputing.strategies);
  advice.recomputing_too_large = advice.strategies.empty() && !recomputing.too_large.empty();
}

}  // namespace lockstep::cli
