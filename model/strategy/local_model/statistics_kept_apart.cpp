#include "model/strategy/local_model/statistics_kept_apart.hpp"

#include <algorithm>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

void add_statistics_kept_apart(Replica& replica, int64_t ranks, const std::string& cause,
                               std::vector<KnownDifference>& known) {
  const auto is_of_batch_norm = [&replica](const Replica::Buffer& buffer) {
    return replica.network().layers[buffer.layer].kind == LayerKind::batch_norm;
  };
  if (ranks > 1 && !replica.plan().synchronises_batch_norm &&
      std::ranges::any_of(replica.buffers(), is_of_batch_norm)) {
    known.push_back({cause, "use a norm without running statistics, such as LayerNorm or GroupNorm",
                     DifferenceKind::of_buffers});
  }
}

}  // namespace lockstep
