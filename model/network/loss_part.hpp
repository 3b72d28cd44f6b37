#pragma once

#include <cstdint>

namespace lockstep {

/// What Kernel::loss_forward computes of a cross entropy whose classes are divided among ranks:
/// scalar 0 of the call, before the first class of this rank. Between the three the ranks exchange
/// what they wrote, one number for each row. Kernel::loss_backward reads predictions, targets, and
/// the greatest scores and sums of all ranks; its scalars: factor, first class.
enum class LossPart : uint8_t {
  greatest,  ///< reads predictions; writes the greatest score of each row
  terms,     ///< reads predictions, targets, greatest; writes the target's score (0 where another
             ///< rank has it) and the sum of exponentials, both relative to the greatest
  loss,      ///< reads scores of targets, sums, targets; writes loss[1]
};

}  // namespace lockstep
