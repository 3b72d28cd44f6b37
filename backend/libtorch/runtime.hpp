#pragma once

namespace lockstep::backend {

/// How many threads LibTorch may use for one kernel of this process: ranks share the machine.
void limit_kernel_threads(int threads);

/// "2.11.0".
const char* libtorch_version();

}  // namespace lockstep::backend
