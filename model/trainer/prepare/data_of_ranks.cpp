#include "model/trainer/prepare/data_of_ranks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/trainer/loop/loader_calls.hpp"
#include "model/trainer/loop/repeated_loop.hpp"
#include "model/trainer/prepare/rank_differences.hpp"

namespace lockstep {

namespace {

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

std::optional<DataOfRanks> data_of_ranks(const TrainingProgram& program,
                                         const LoaderSettings& loader, LoaderRole role,
                                         const RunOptions& options) {
  DataOfRanks data;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    const Place place = place_of(options, rank);
    const TrainerMembership membership = program.membership(place);
    if (!membership.runs_trainer) {
      data.batches.emplace_back();
      data.samples.emplace_back();
      continue;
    }
    OwnBatches own;
    if (!find_own(loader, place, own)) {
      return std::nullopt;
    }
    const RankBatches batches(loader, policy_of(program, membership, role), 0, own);
    data.batches.emplace_back(batches.size());
    data.samples.emplace_back(batches.samples_of(batches.size()));
  }
  return data;
}

TrainBatches train_batches(const TrainingProgram& program, const RunOptions& options) {
  TrainBatches result;
  for (const LoaderSettings& loader : program.train) {
    if (batches_in_step(loader) || options.world_size == 1) {
      continue;
    }
    const auto data = data_of_ranks(program, loader, LoaderRole::train, options);
    if (!data) {
      return {.are_known = false};
    }
    std::vector<int64_t> taken;
    int64_t last = 0;
    for (const std::optional<int64_t>& batches : data->batches) {
      last = batches ? program.trainer.limit_train.of(*batches) : last;
      taken.push_back(last);
    }
    const bool are_equal = std::ranges::adjacent_find(taken, std::not_equal_to()) == taken.end();
    result.by_rank = are_equal ? std::move(result.by_rank) : std::move(taken);
  }
  return result;
}

}  // namespace lockstep
