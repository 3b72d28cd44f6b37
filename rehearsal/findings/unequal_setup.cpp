#include "rehearsal/findings/unequal_setup.hpp"

#include <fmt/format.h>

#include <vector>

#include "model/trainer/prepare/strategy_arguments.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep::cli {

namespace {

RankSet rank_set(const std::vector<int64_t>& ranks) {
  RankSet set;
  for (const int64_t rank : ranks) {
    set.add(static_cast<int32_t>(rank));
  }
  return set;
}

std::optional<FindingCause> unequal_argument(const Object& strategy) {
  for (const ObjectArgument& argument : strategy.arguments) {
    std::vector<int64_t> ranks;
    add_named_ranks(argument.value, ranks);
    if (ranks.empty()) {
      continue;
    }
    FindingCause cause;
    cause.site = first_written({&argument.value.place, &strategy.place});
    cause.label = fmt::format("another value on {}", rank_set(ranks).phrase());
    cause.difference = fmt::format("`{}` is not the same on all ranks", argument.name);
    cause.equal = fmt::format(
        "give `{}` the same value on every rank: the strategy's calls depend on it", argument.name);
    return cause;
  }
  return std::nullopt;
}

std::optional<FindingCause> unequal_freezing(const std::vector<LayerSpec>& layers,
                                             int64_t all_ranks) {
  for (const LayerSpec& layer : layers) {
    if (!layer.frozen_on.empty() && std::ssize(layer.frozen_on) < all_ranks) {
      std::vector<int64_t> ranks;
      for (const Placed<int64_t>& rank : layer.frozen_on) {
        ranks.push_back(rank.value);
      }
      FindingCause cause;
      cause.site = first_written({&layer.frozen_on.front().place, &layer.place});
      cause.label = fmt::format("frozen on {} alone", rank_set(ranks).phrase());
      cause.difference = "a layer is not frozen on all ranks";
      cause.equal =
          "freeze the same layers on every rank: a rank reduces the gradients of what it "
          "trains";
      return cause;
    }
    for (const std::vector<LayerSpec>* inner : {&layer.layers, &layer.shortcut}) {
      if (auto cause = unequal_freezing(*inner, all_ranks)) {
        return cause;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<FindingCause> unequal_setup(const OneRun& run) {
  const Scenario& scenario = *run.preparation.scenario;
  if (scenario.trainer && scenario.trainer->strategy) {
    if (auto cause = unequal_argument(*scenario.trainer->strategy)) {
      return cause;
    }
  }
  return scenario.model
             ? unequal_freezing(scenario.model->layers, run.preparation.options.world_size)
             : std::nullopt;
}

}  // namespace lockstep::cli
