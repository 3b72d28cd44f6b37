#pragma once

#include <optional>
#include <vector>

#include "model/strategy/local_model/backward_pass.hpp"
#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// What a kernel costs.
struct KernelPrice {
  int64_t work = 0;
  Bytes memory_traffic{};
};

/// The kernels of a layer that no other rank has a part in.
class LayerKernels : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  DType output_type_of(const LayerRun& run) const;
  /// `choices`: where the kernel counts those of a mixture's router.
  void forward(Rank& rank, const LayerRun& run, const LayerTurn& turn, const Slice& output,
               const std::optional<Slice>& choices);
  /// `gradients`: those of its parameters.
  Ticket backward(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients,
                  BackwardHalf half);

  KernelPrice forward_price(const LayerRun& run, const LayerTurn& turn) const;
  KernelPrice backward_price(size_t layer, BackwardHalf half) const;
  static bool updates_buffers(const Layer& layer, const LayerRun& run, const LayerTurn& turn);
};

}  // namespace lockstep
