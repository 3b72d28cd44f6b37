#pragma once

#include <cstdint>

#include "model/core/place.hpp"

namespace lockstep {

/// What one rank is to a training. It follows from the strategy's arguments and the place of the
/// rank, so that samplers and batch sizes are known before any rank runs.
struct TrainerMembership {
  /// Ranks whose trainers agree with one another: what `reduce` divides by, and how many parts
  /// `all_gather` brings. 1: the strategy is not distributed (dp is one process).
  int32_t trainers = 1;
  int32_t trainer_index = 0;
  /// Among how many a distributed sampler divides the samples, and whose part this rank gets. Ranks
  /// that compute one replica together have the same index.
  int32_t data_parallel_size = 1;
  int32_t data_parallel_index = 0;
  bool counts_samples = true;  ///< of the ranks with one index, one counts what they are trained on
  int64_t batch_size_multiple = 1;  ///< by which a batch must be divisible
  bool fixes_batch_size = false;    ///< the strategy's arguments give it
  bool runs_trainer = true;         ///< false: a server, which `Strategy::serve` runs

  static TrainerMembership of_one_process() { return {}; }
  static TrainerMembership of_every_rank(const Place& place) {
    const auto rank = static_cast<int32_t>(place.rank.value);
    return {place.world_size, rank, place.world_size, rank};
  }
};

}  // namespace lockstep
