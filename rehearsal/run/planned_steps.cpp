#include "rehearsal/run/planned_steps.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

int64_t quotient(int64_t dividend, int64_t divisor, bool rounds_up) {
  return dividend / divisor + (rounds_up && dividend % divisor != 0 ? 1 : 0);
}

std::optional<int64_t> steps_of_epoch(const Preparation& preparation, const TrainerSpec& trainer) {
  const Scenario& scenario = *preparation.scenario;
  if (!scenario.data || scenario.data->train.size() != 1 || trainer.limit_train_batches ||
      trainer.overfit_batches) {
    return std::nullopt;
  }
  const LoaderSpec& loader = scenario.data->train.front();
  const int64_t size = value_or(loader.batch_size, int64_t{0});
  const int64_t ranks = preparation.data_parallel_size;
  const int64_t accumulated = value_or(trainer.accumulate_grad_batches, int64_t{1});
  if (!loader.samples || size < 1 || ranks < 1 || accumulated < 1) {
    return std::nullopt;
  }
  const int64_t of_rank = quotient(loader.samples->value, ranks, true);
  const int64_t batches = quotient(of_rank, size, !value_or(loader.drop_last, false));
  return quotient(batches, accumulated, true);
}

}  // namespace

std::optional<int64_t> planned_steps(const Preparation& preparation) {
  if (!preparation.scenario->trainer) {
    return std::nullopt;
  }
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  const int64_t most = value_or(trainer.max_steps, int64_t{-1});
  const int64_t epochs = value_or(trainer.max_epochs, int64_t{-1});
  const std::optional<int64_t> of_epoch = steps_of_epoch(preparation, trainer);
  constexpr int64_t countable = int64_t{1} << 31;
  std::optional<int64_t> steps;
  if (epochs >= 0 && epochs < countable && of_epoch && *of_epoch < countable) {
    steps = epochs * *of_epoch;
  }
  if (most >= 0) {
    steps = std::min(steps.value_or(most), most);
  }
  return steps;
}

}  // namespace lockstep::cli
