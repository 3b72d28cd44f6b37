#include "backend/libtorch/runtime.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <torch/version.h>

#include <cstdlib>

namespace lockstep::backend {

void quieten_libtorch() {
  // An error of ours comes as an exception, and is reported once, without a stack trace.
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
  c10::initLogging();
}

void limit_kernel_threads(int threads) { at::set_num_threads(threads); }

void keep_convolutions_true_to_type() { at::globalContext().setAllowTF32CuDNN(false); }

const char* libtorch_version() { return TORCH_VERSION; }

}  // namespace lockstep::backend
