#pragma once

#include "model/core/units.hpp"
#include "model/network/layer.hpp"
#include "model/network/output_type.hpp"

namespace lockstep {

/// The type in which the layer's kernels read an input of type `input`: autocast converts it for
/// products to the narrow type, for layer norm of CUDA and for losses to fp32.
DType reading_type(const Layer& layer, DType input, const ComputingTypes& types);

/// MultiheadAttention reads its input with batch and positions exchanged: its first product copies
/// that, and saves the copy instead of the input. Not so with a batch of 1, which is neglected.
bool copies_input(const Layer& layer);

/// Products of the layer that read its input, or the tensor beside it, each of which converts it
/// for itself and keeps the result: autocast remembers what it has converted of weights alone.
struct ConvertedCopies {
  int64_t of_input = 1;
  int64_t of_branch = 1;
};
ConvertedCopies converted_copies(const Layer& layer);

/// What autocast has saved beside: of attention in windows, whose scores become fp32 with the bias,
/// the probabilities before they are narrow again.
Bytes saves_of_autocast(const Layer& layer);

/// Bytes of one sample that the layer's backward needs beside input and output, in `dtype`.
Bytes own_saves(const Layer& layer, DType dtype);
/// The share of attention's core in them: what selective recomputation makes again.
Bytes core_saves(const Layer& layer, DType dtype);

/// What a layer of several kernels holds in between, of one sample, beyond what it reads, hands on
/// and keeps: while its forward runs, and while its backward runs.
Bytes forward_workspace(const Layer& layer, DType dtype);
Bytes backward_workspace(const Layer& layer, DType dtype);

/// The gradient of the output is that of the input, in the same memory.
bool hands_gradient_on(const Layer& layer);

}  // namespace lockstep
