#pragma once

#include "backend/libtorch/tensor_memory.hpp"
#include "io/report/rank_report.hpp"

namespace lockstep::cli {

/// Takes case after case from the socket that the launcher left as descriptor 3 (see
/// rehearsal/launch/fleet.hpp), runs its rank of each and answers with its report, until the
/// launcher closes the socket. Libraries stay loaded, and connections are kept from case to case
/// where the last one ended well. Throws FrameError when the launcher says what nobody understands.
void serve_cases(const RankOrigin& origin, backend::TensorMemory& tensors);

}  // namespace lockstep::cli
