#pragma once

#include <vector>

#include "model/network/layer.hpp"
#include "model/strategy/local_model/forward_part.hpp"

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

/// A batch norm whose statistics are those of all ranks: torch.nn.SyncBatchNorm.
class SharedBatchNorm : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  /// Returns when the statistics are there, for which the host waits before the next layer.
  Ticket forward(Rank& rank, LayerRun& run, const LayerTurn& turn, const Slice& output);
  Ticket backward(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients);
};

}  // namespace lockstep
