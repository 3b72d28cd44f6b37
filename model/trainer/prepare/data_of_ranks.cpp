#include "model/trainer/prepare/data_of_ranks.hpp"

#include <algorithm>

#include "model/trainer/loop/loader_calls.hpp"
#include "model/trainer/prepare/rank_differences.hpp"

namespace lockstep {

namespace {

const TrainerSettings::Limit& limit_of(const TrainerSettings& settings, LoaderRole role) {
  switch (role) {
    case LoaderRole::train: return settings.limit_train;
    case LoaderRole::evaluate: break;
    case LoaderRole::predict: return settings.limit_predict;
  }
  return settings.limit_validation;
}

std::optional<int64_t> integer_at(const Expression& expression, const Place& place) {
  if (expression.uses_random() || expression.uses_unknown()) {
    return std::nullopt;
  }
  PlaceNames names(place);
  try {
    const Value value = evaluate(expression, names);
    return value.kind() == Value::Kind::integer ? std::optional(value.integer()) : std::nullopt;
  } catch (const EvaluationError&) {
    return std::nullopt;  // the run says so, with the rank
  }
}

// False: it is not known.
bool find_own(const LoaderSettings& loader, const Place& place, OwnBatches& own) {
  if (loader.batches) {
    own.count = integer_at(*loader.batches, place);
  }
  if (loader.batch_size_of_rank) {
    own.size = integer_at(*loader.batch_size_of_rank, place);
  }
  return own.count.has_value() == loader.batches.has_value() &&
         own.size.has_value() == loader.batch_size_of_rank.has_value() && own.size.value_or(1) > 0;
}

}  // namespace

bool DataOfRanks::are_equal_batches() const {
  const auto first = std::ranges::find_if(batches, [](int64_t number) { return number != none; });
  return std::all_of(first, batches.end(),
                     [&](int64_t number) { return number == none || number == *first; });
}

std::optional<DataOfRanks> data_of_ranks(const TrainingProgram& program,
                                         const LoaderSettings& loader, LoaderRole role,
                                         const RunOptions& options) {
  DataOfRanks data;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    const Place place = place_of(options, rank);
    const TrainerMembership membership = program.membership(place);
    if (!membership.runs_trainer) {
      data.batches.push_back(DataOfRanks::none);
      data.samples.push_back(0);
      continue;
    }
    OwnBatches own;
    if (!find_own(loader, place, own)) {
      return std::nullopt;
    }
    const RankBatches batches(loader, policy_of(program, membership, role), 0, own);
    data.batches.push_back(limit_of(program.trainer, role).of(batches.size()));
    data.samples.push_back(batches.samples_of(data.batches.back()));
  }
  return data;
}

}  // namespace lockstep
