#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// The closed list of device work. `sim` has a cost and, where there is one, the reference
/// arithmetic of each; a real world has its library call. Operands are the op's reads and writes in
/// the order given here; `layer` is Op::tag, an index into the world's Network.
enum class Kernel : uint16_t {
  timed,     ///< costs exactly Op::work picoseconds; computes nothing
  roofline,  ///< costs by Op::work FLOPs and Op::bytes of memory traffic; computes nothing

  layer_forward,   ///< reads input, the layer's parameters.., what a residual remembered or what
                   ///< was put aside;
                   ///< writes output, the layer's buffers (none: statistics are not tracked)..;
                   ///< scalars: samples, training (0/1), and, where activation checkpointing runs
                   ///< it again or no backward comes here, 1: nothing is kept for a backward;
                   ///< of an embedding's part of the rows, the first of them (4th); a mixture
                   ///< of experts adds to write 1 (int64), if it has elements, how many choices of
                   ///< tokens fell on each expert
  layer_backward,  ///< reads output gradient, input, parameters.., (residual_begin: the gradient
                   ///< that came round the branch; residual_multiply and readers of what was put
                   ///< aside: that tensor); writes input gradient (of no elements where none is
                   ///< wanted), parameter gradients.. (added to), the gradient of that tensor (of
                   ///< what was put aside added to); scalars: samples, and the same first row, or
                   ///< of a mixture of experts the loss's factor (2nd)
  // Op::tag of the two is the index of the module whose loss it is, if there are several.
  loss_forward,    ///< reads predictions, targets; writes loss[1]; in parts of classes: LossPart
  loss_backward,   ///< reads predictions, targets; writes their gradient; scalars: factor; the same
  sgd_step,        ///< reads gradient; writes parameter, momentum buffer (optional); scalars:
                   ///< learning rate, momentum, weight decay, step (from 1), and where they are
                   ///< not 0: dampening, nesterov (0/1), maximize (0/1)
  adam_step,       ///< reads gradient; writes parameter, first and second moment, and the largest
                   ///< second one (amsgrad alone); scalars: learning rate, beta1, beta2, epsilon,
                   ///< weight decay, step, decoupled (0/1), and maximize (0/1) where it is not 0
  qadam_step,      ///< operands of adam_step; scalars: learning rate, beta1, beta2, epsilon, step,
                   ///< and whether the gradient enters the moments (0/1)
  optimizer_step,  ///< reads gradient; writes parameter, state..; scalars: UpdateCall
                   ///< (model/network/optimizer/update_kernel.hpp)

  fill,        ///< writes all of write 0 with scalar 0
  copy,        ///< read i to write i, element for element
  scale,       ///< write i = read i * scalar 0 (or reads nothing: in place)
  add,         ///< write i += read i
  add_scaled,  ///< write i += read i * scalar 0, each sum rounded once
  average,     ///< write 0 = mean of all elements of read 0
  cast,        ///< read i to write i, rounding to the type of the write
  swap_outer,  ///< write 0 = read 0 as [scalar 0, scalar 1, rest], its first two dimensions swapped

  // Codec MinMaxUInt8 (model/network/arithmetic/min_max_uint8.hpp); scalars: number of chunks.
  compress,  ///< reads numbers; writes their bytes, and (optional) one number: the larger of it and
             ///< the largest difference between a number and what is decoded of it
  decompress,  ///< reads bytes; writes numbers

  squared_norm,   ///< write 0 = sum of the squares of all reads
  clip_by_norm,   ///< write i *= min(1, scalar 0 / (root of read 0 + 1e-6))
  clip_by_value,  ///< write i = its elements, none beyond +- scalar 0
  unscale,        ///< writes 1.. *= scalar 0; write 0 becomes 1 where one of their elements was
                  ///< infinite or no number, and else stays as it was

  matrix_product,  ///< write 0 = read 0 x read 1, row by row; scalars: rows and columns of the
                   ///< result between which the inner length stands, then for each of the two
                   ///< whether it is read transposed (0/1)
  orthogonalize,   ///< the columns of write 0 become orthonormal; scalars: rows, columns, and what
                   ///< is added to the norm of each
  adasum,          ///< n writes, 2n reads: write i = read i (1 - d / 2s) + read n + i (1 - d / 2t)
                   ///< with d the product of both, s and t their squared norms (Horovod's Adasum)
};

inline constexpr Kernel last_kernel = Kernel::adasum;

std::string_view name_of(Kernel kernel);

/// Whether it is the step of an optimizer.
constexpr bool is_update(Kernel kernel) {
  return Kernel::sgd_step <= kernel && kernel <= Kernel::optimizer_step;
}

}  // namespace lockstep
