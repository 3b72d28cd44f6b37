#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

/// How old the weights were by which the gradients were computed that a server received: of each,
/// how many updates it made between the worker's pull of the weights and its push of the gradient.
struct Staleness {
  int64_t pushes = 0;
  int64_t updates = 0;  ///< of all pushes together
  int64_t most = 0;     ///< of one push
  int64_t dropped = 0;  ///< pushes that came too late to count

  void add(int64_t of_push) {
    ++pushes;
    updates += of_push;
    most = std::max(most, of_push);
  }
  void merge(const Staleness& other) {
    pushes += other.pushes;
    updates += other.updates;
    most = std::max(most, other.most);
    dropped += other.dropped;
  }
  double mean() const {
    return pushes == 0 ? 0 : static_cast<double>(updates) / static_cast<double>(pushes);
  }
  bool operator==(const Staleness&) const = default;
};

}  // namespace lockstep
