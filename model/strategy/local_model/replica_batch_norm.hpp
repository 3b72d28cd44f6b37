#pragma once

#include "model/network/layer.hpp"

namespace lockstep {

/// A forward of a batch norm.
struct BatchNormForward {
  int64_t samples = 0;
  bool training = true;
};

/// Whether batch norms were converted to SyncBatchNorm, and where it runs.
struct BatchNormPlace {
  bool is_converted = false;
  bool on_gpu = true;
  int32_t ranks = 1;
};

/// Throws what torch raises before any work is queued: ProgramException. Nothing for other layers.
void check_batch_norm(const Layer& layer, const BatchNormForward& forward,
                      const BatchNormPlace& place);

}  // namespace lockstep
