#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/run.hpp"
#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// How much of a data loader each rank gets in an epoch, as far as that is known before the run.
struct DataOfRanks {
  std::vector<int64_t> batches;  ///< by rank; none where it runs no trainer
  std::vector<int64_t> samples;  ///< by rank, of these batches
  static constexpr int64_t none = -1;

  /// Of ranks that have some.
  bool are_equal_batches() const;
};

/// Nothing where an expression of the loader names what is not known, or gives no legal number.
std::optional<DataOfRanks> data_of_ranks(const TrainingProgram& program,
                                         const LoaderSettings& loader, LoaderRole role,
                                         const RunOptions& options);

}  // namespace lockstep
