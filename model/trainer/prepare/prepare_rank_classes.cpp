// Which ranks do the same, as far as the scenario says: a simulation runs one of each such class.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/cluster/presets.hpp"
#include "model/expression/evaluate.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/alike_units.hpp"
#include "model/trainer/prepare/data_of_ranks.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/rank_differences.hpp"

namespace lockstep {

namespace {

/// The different values of an expression, numbered. Texts are shortened: they find, and do not
/// decide.
class DistinctValues {
 public:
  uint32_t number_of(const Value& value) {
    auto& candidates = by_text_[text_of(value)];
    for (const auto& [known, number] : candidates) {
      if (known.kind() == value.kind() && known == value) {
        return number;
      }
    }
    candidates.emplace_back(value, next_);
    return next_++;
  }

 private:
  std::map<std::string, std::vector<std::pair<Value, uint32_t>>> by_text_;
  uint32_t next_ = 0;
};

/// What makes ranks of different classes; of the same class it is the same.
using Signature = std::vector<uint32_t>;

/// A number for each different thing, from 0 on in the order of their first appearance.
template <class T>
using Numbers = std::map<T, uint32_t>;

template <class T>
uint32_t number_of(T thing, Numbers<T>& known) {
  return known.try_emplace(std::move(thing), static_cast<uint32_t>(known.size())).first->second;
}

/// What a strategy says of the ranks; nothing of bare programs.
struct SaidOfRanks {
  std::vector<int64_t> kinds;  ///< by rank; empty: all of one
  Neighbourhoods neighbourhoods;
  bool may_fold_nodes = true;  ///< one rank of a node for all that are alike
  int32_t ranks_per_host_link = 1;
  std::function<TrainerMembership(const Place&)> membership;  ///< null: all are members alike
  std::vector<DataOfRanks> data;  ///< of loaders that give ranks different parts
};

/// What a rank is by itself; null where that cannot be said.
class RankKinds {
 public:
  RankKinds(const RunOptions& options, const RankDifferences& differences, const SaidOfRanks& said)
      : options_(options),
        differences_(differences),
        said_(said),
        values_(differences.expressions().size()) {}

  std::optional<uint32_t> of(int32_t rank) {
    const Place place = place_of(options_, rank);
    PlaceNames names(place);
    Signature signature;
    try {
      for (size_t index = 0; index < values_.size(); ++index) {
        const Expression& expression = differences_.expressions()[index];
        signature.push_back(values_[index].number_of(evaluate(expression, names)));
      }
    } catch (const EvaluationError&) {
      return std::nullopt;  // the run says so, with the rank
    }
    if (said_.membership) {
      const TrainerMembership own = said_.membership(place);
      signature.push_back(static_cast<uint32_t>(own.trainers));
      signature.push_back(static_cast<uint32_t>(own.data_parallel_size));
      signature.push_back(own.counts_samples ? 1 : 0);
    }
    for (const DataOfRanks& each : said_.data) {
      signature.push_back(number_of(each.samples[static_cast<size_t>(rank)], samples_));
    }
    const int64_t kind = said_.kinds.empty() ? 0 : said_.kinds[static_cast<size_t>(rank)];
    const bool is_alone = rank == 0 || differences_.alone().contains(rank);
    return number_of(
        What(is_alone ? rank : -1, kind, differences_.faults_of(rank), std::move(signature)),
        known_);
  }

 private:
  using What = std::tuple<int32_t, int64_t, std::vector<uint32_t>, Signature>;

  const RunOptions& options_;
  const RankDifferences& differences_;
  const SaidOfRanks& said_;
  std::vector<DistinctValues> values_;  ///< by expression
  Numbers<std::optional<int64_t>> samples_;
  Numbers<What> known_;
};

/// What each rank is, as numbers; nothing where that of some cannot be said.
std::optional<std::vector<uint32_t>> numbers_of_ranks(const RunOptions& options,
                                                      const RankDifferences& differences,
                                                      const SaidOfRanks& said) {
  RankKinds kinds(options, differences, said);
  std::vector<uint32_t> numbers;
  numbers.reserve(static_cast<size_t>(options.world_size));
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    const std::optional<uint32_t> own = kinds.of(rank);
    if (!own) {
      return std::nullopt;
    }
    numbers.push_back(*own);
  }
  return numbers;
}

std::shared_ptr<const RankClasses> if_worthwhile(RankClasses classes) {
  return classes.size() <= classes.ranks() / 2
             ? std::make_shared<const RankClasses>(std::move(classes))
             : nullptr;
}

// Without exchange of their own, the ranks of a node are neighbours that meet in collectives of
// all.
Neighbourhoods ranks_of_nodes(const RunOptions& options) {
  Neighbourhoods nodes;
  nodes.are_nodes = true;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    nodes.of_rank.push_back(static_cast<uint32_t>(rank / options.ranks_per_node));
    nodes.columns.push_back(static_cast<uint32_t>(rank % options.ranks_per_node));
  }
  return nodes;
}

// Ranks of a node share its links and its host. Rank 0 makes its node one of its own.
std::shared_ptr<const RankClasses> classes_by_node(const RunOptions& options,
                                                   const RankDifferences& differences,
                                                   const SaidOfRanks& said) {
  const auto numbers = numbers_of_ranks(options, differences, said);
  if (!numbers) {
    return nullptr;
  }
  std::optional<RankClasses> classes = alike_units(
      *numbers, {options.ranks_per_node, said.ranks_per_host_link},
      said.neighbourhoods.of_rank.empty() && said.may_fold_nodes ? ranks_of_nodes(options)
                                                                 : said.neighbourhoods);
  return classes ? if_worthwhile(*std::move(classes)) : nullptr;
}

// On a network that is the same for every pair, ranks share nothing.
std::shared_ptr<const RankClasses> classes_by_rank(const RunOptions& options,
                                                   const RankDifferences& differences) {
  auto numbers = numbers_of_ranks(options, differences, {});
  return numbers ? if_worthwhile(RankClasses(*std::move(numbers))) : nullptr;
}

void add_program(const ProgramSpec& program, RankDifferences& differences) {
  for_each_statement(program, [&](const Statement& statement) {
    for_each_expression(statement,
                        [&](const Expression& expression) { differences.add(expression); });
    differences.add_root(statement.communication.src);
    differences.add_root(statement.communication.dst);
  });
}

void add_faults(const Preparation& preparation, RankDifferences& differences) {
  const std::vector<FaultSpec>& faults = preparation.scenario->faults;
  for (uint32_t number = 0; number < faults.size(); ++number) {
    differences.add_fault(faults[number], number, preparation.options.ranks_per_node);
  }
}

bool may_have_classes(const Preparation& preparation, const WorldAbilities& world) {
  const Scenario& scenario = *preparation.scenario;
  const RunOptions& options = preparation.options;
  const bool asked_for_all = scenario.verify && value_or(scenario.verify->all_ranks, false);
  // Slow links are named by nodes of the cluster, on which a later attempt places other ranks.
  const bool knows_links = world.attempt.nodes.empty() ||
                           std::ranges::none_of(scenario.faults, [](const FaultSpec& fault) {
                             return fault.kind == FaultKind::slow_link;
                           });
  return world.runs_classes && !asked_for_all && !options.numerics && !preparation.values_decide &&
         knows_links && options.world_size > 2;
}

// What is given may be logged, and differs from sample to sample; what is drawn where nothing is
// given is a placeholder.
bool gives_values(const LoaderSettings& loader) {
  return loader.given != nullptr || (loader.columns != nullptr && loader.columns->are_given());
}

// Whether every rank is a trainer with samples of its own.
bool all_train_alike(const StrategyEntry& entry, const TrainingProgram& program,
                     const RunOptions& options) {
  for (int32_t rank = 0; entry.membership && rank < options.world_size; ++rank) {
    const TrainerMembership own =
        entry.membership_of(program.strategy_arguments, place_of(options, rank));
    const TrainerMembership usual = TrainerMembership::of_every_rank(place_of(options, rank));
    if (own.trainers != usual.trainers || own.trainer_index != usual.trainer_index ||
        own.data_parallel_size != usual.data_parallel_size ||
        own.data_parallel_index != usual.data_parallel_index || !own.counts_samples ||
        own.batch_size_multiple != 1 || !own.runs_trainer) {
      return false;
    }
  }
  return true;
}

// Of the machine that the scenario names, or of none.
int32_t devices_per_host_link(const Scenario& scenario) {
  const bool is_named = scenario.cluster && scenario.cluster->preset;
  const std::optional<Cluster> known =
      is_named ? cluster_preset(scenario.cluster->preset->value) : std::nullopt;
  return known ? known->node.devices_per_pcie_switch : 1;
}

// Whether parts that ranks have of its samples may be of several sizes; of `batches` expressions
// tell.
bool gives_parts(const LoaderSettings& loader, LoaderRole role) {
  return !loader.batches &&
         (role == LoaderRole::predict || loader.sampler == SamplerKind::unrepeated);
}

// False: it is not known before the run what ranks get.
bool add_data(const TrainingProgram& program, const RunOptions& options,
              RankDifferences& differences, SaidOfRanks& said) {
  const std::pair<const std::vector<LoaderSettings>*, LoaderRole> roles[] = {
      {&program.train, LoaderRole::train},
      {&program.validation, LoaderRole::evaluate},
      {&program.test, LoaderRole::evaluate},
      {&program.predict, LoaderRole::predict}};
  for (const auto& [loaders, role] : roles) {
    for (const LoaderSettings& loader : *loaders) {
      std::optional<DataOfRanks> data;
      if (gives_parts(loader, role)) {
        data = data_of_ranks(program, loader, role, options);
      }
      if (gives_values(loader) || (gives_parts(loader, role) && !data)) {
        return false;
      }
      if (data) {
        said.data.push_back(*std::move(data));
      }
      differences.add(loader.batches);
      differences.add(loader.batch_size_of_rank);
    }
  }
  return true;
}

}  // namespace

std::shared_ptr<const RankClasses> classes_of_ranks(const Preparation& preparation,
                                                    const StrategyEntry& entry,
                                                    const TrainingProgram& program,
                                                    const WorldAbilities& world) {
  const RunOptions& options = preparation.options;
  const int32_t per_node = options.ranks_per_node;
  const bool has_nodes =
      per_node > 0 && options.world_size % per_node == 0 && options.ranks_of_nodes.empty();
  if (!may_have_classes(preparation, world) || !has_nodes || !program.arguments_of_ranks.empty() ||
      !program.plans_of_ranks.empty()) {
    return nullptr;
  }
  RankDifferences differences;
  SaidOfRanks said;
  if (!add_data(program, options, differences, said)) {
    return nullptr;
  }
  if (preparation.scenario->program) {
    add_program(*preparation.scenario->program, differences);
  }
  add_faults(preparation, differences);
  if (!differences.known()) {
    return nullptr;
  }
  const std::unique_ptr<Strategy> strategy = entry.make(program.plan, program.strategy_arguments);
  const RanksOfRun ranks{options.world_size, per_node, program.disk.count() > 0,
                         train_batches(program, options).by_rank};
  said.kinds = strategy->kinds_of_ranks(ranks);
  said.neighbourhoods = strategy->neighbourhoods_of_ranks(ranks);
  said.ranks_per_host_link = devices_per_host_link(*preparation.scenario);
  if (!world.runs_columns) {
    said.neighbourhoods.columns.clear();
    said.may_fold_nodes = false;
  }
  if (said.kinds.empty()) {
    return nullptr;
  }
  if (said.neighbourhoods.of_rank.empty() && !all_train_alike(entry, program, options)) {
    return nullptr;
  }
  if (!said.neighbourhoods.of_rank.empty()) {
    if (preparation.scenario->program &&
        find_statement(*preparation.scenario->program, StatementKind::new_group)) {
      return nullptr;  // of some neighbours, of whom others may run
    }
    said.membership = [&](const Place& place) {
      return entry.membership_of(program.strategy_arguments, place);
    };
  }
  return classes_by_node(options, differences, said);
}

void note_data_parallel_indices(Preparation& preparation, const TrainingProgram& program) {
  const RunOptions& options = preparation.options;
  const bool exchange = options.classes && options.classes->exchange_with_neighbours();
  if (!exchange && preparation.data_parallel_size >= options.world_size) {
    return;  // each rank has samples of its own
  }
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    preparation.data_parallel_indices.push_back(
        program.membership(place_of(options, rank)).data_parallel_index);
  }
}

std::shared_ptr<const RankClasses> classes_of_bare_ranks(const Preparation& preparation,
                                                         const WorldAbilities& world) {
  const ClusterSpec& cluster = *preparation.scenario->cluster;
  const bool has_nodes = cluster.preset || cluster.nodes || cluster.gpus ||
                         !preparation.options.ranks_of_nodes.empty();
  RankDifferences differences;
  add_program(*preparation.scenario->program, differences);
  add_faults(preparation, differences);
  const bool is_decided = is_decided_by_values(*preparation.scenario->program);
  if (!may_have_classes(preparation, world) || has_nodes || is_decided || !differences.known()) {
    return nullptr;
  }
  return classes_by_rank(preparation.options, differences);
}

}  // namespace lockstep
