#include "backend/libtorch/runtime.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

namespace lockstep::backend {

void limit_kernel_threads(int threads) { at::set_num_threads(threads); }

void keep_convolutions_true_to_type() { at::globalContext().setAllowTF32CuDNN(false); }

const char* libtorch_version() { return TORCH_VERSION; }

}  // namespace lockstep::backend
