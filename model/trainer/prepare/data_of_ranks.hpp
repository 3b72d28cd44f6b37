#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/run.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// How much of a data loader each rank gets in an epoch, by rank; nothing where it runs no trainer.
/// Limits of the Trainer are left out.
struct DataOfRanks {
  std::vector<std::optional<int64_t>> batches;
  std::vector<std::optional<int64_t>> samples;
};

/// Nothing where an expression of the loader names what is not known before the run, or gives no
/// legal number.
std::optional<DataOfRanks> data_of_ranks(const TrainingProgram& program,
                                         const LoaderSettings& loader, LoaderRole role,
                                         const RunOptions& options);

/// How many batches of training each rank takes in an epoch, as far as that is known before the
/// run.
struct TrainBatches {
  bool are_known = true;
  /// By rank; empty: as many on each. Where a rank runs no trainer: those of another.
  std::vector<int64_t> by_rank{};
};
TrainBatches train_batches(const TrainingProgram& program, const RunOptions& options);

}  // namespace lockstep
