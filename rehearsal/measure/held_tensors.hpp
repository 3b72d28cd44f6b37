#pragma once

#include <cstdint>
#include <optional>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// The most that the framework's tensors held at once on a rank of a real run, and what explains
/// it.
struct HeldTensors {
  int32_t rank = 0;
  Bytes held{};
  Bytes accounted{};  ///< the peaks of the rank's devices and host: what strategy and trainer
                      ///< allocate
  /// Additional memory that is allowed on each device: what graphs save beside accounted outputs
  /// (no more than what the network keeps by PyTorch's derivatives, and three matrices of scores
  /// where attention draws dropout), and for the largest kernel a copy of all that it reads and
  /// writes, in 8 bytes per element: of a layer, with the patches of a convolution, or of the four
  /// arrays of weights that an optimizer has.
  Bytes allowance{};
  bool explained() const { return held <= accounted + allowance; }
};

/// Returns the rank whose tensors exceed its accounts most. Nothing if nobody counted, if nothing
/// computed, and for several modules, of which a step may run any number.
std::optional<HeldTensors> held_tensors(const OneRun& real);

}  // namespace lockstep::cli
