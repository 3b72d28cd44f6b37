#pragma once

#include <cstdint>

namespace lockstep {

/// The position of a loop, as the names of expressions see it.
struct Progress {
  int64_t global_step = 0;           ///< optimizer steps
  int64_t batches_that_stepped = 0;  ///< disregarding several optimizers: what loggers count
  int64_t epoch = 0;
  int64_t batches = 0;  ///< of training that began, over all epochs
  int64_t batch_idx = 0;
  int64_t batch_size = 0;
  int64_t num_batches = 0;
  int64_t dataloader_idx = 0;
  int64_t resumed_batch = 0;  ///< of the next epoch, at which it goes on
  bool is_last_batch = false;
  bool sanity_checking = false;
  bool should_stop = false;
};

}  // namespace lockstep
