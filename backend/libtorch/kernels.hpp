#pragma once

#include <cstdint>
#include <memory>

#include "model/network/execute.hpp"

namespace lockstep::backend {

/// The kernels of one rank by LibTorch: layers forward and backward through autograd, losses, and
/// its own optimizers' arithmetic; true to the dtypes of their operands. A training forward keeps
/// its autograd graph until the backward of the same layer and input takes it; a backward that
/// finds none, or one made of other values, runs the forward again (with training's behaviour, and
/// no buffer is updated). Does nothing when an operand carries no values.
///
/// Keeps the rank's buffers itself, as tensors (KernelExecutor::store), so that kernels work on
/// them in place.
///
/// Dropout draws from a generator of its own for every call, seeded by the layer and the values of
/// its input: a recomputed forward has the mask of the first. Ranks draw alike on equal inputs.
///
/// Data that a layer cannot take (an index beyond its table) and whatever LibTorch refuses is an
/// ArithmeticError. Streams of the rank may call at the same time.
std::unique_ptr<KernelExecutor> make_libtorch_kernels();

}  // namespace lockstep::backend
