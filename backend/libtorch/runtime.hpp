#pragma once

namespace lockstep::backend {

/// LibTorch says nothing on standard error but what TORCH_CPP_LOG_LEVEL asks for. To be called
/// before any thread is started.
void quieten_libtorch();

/// How many threads LibTorch may use for one kernel of this process: ranks share the machine.
void limit_kernel_threads(int threads);

/// Convolutions of fp32 on a GPU stay fp32: PyTorch's default computes them in TF32.
void keep_convolutions_true_to_type();

/// "2.11.0".
const char* libtorch_version();

}  // namespace lockstep::backend
