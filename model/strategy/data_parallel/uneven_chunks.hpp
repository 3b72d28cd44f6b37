#pragma once

#include <cstdint>
#include <vector>

#include "model/network/network.hpp"
#include "model/strategy/known_difference.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// Batches that were cut into chunks of different sizes, of which each counts the same.
class UnevenChunks {
 public:
  /// The chunks of a training batch, whose losses are averaged.
  void note(const std::vector<Batch>& chunks);
  /// Nothing where no batch was, or the loss is a sum, whose samples all count the same.
  void add_difference(const Network& network, std::vector<KnownDifference>& known) const;

 private:
  std::vector<int64_t> first_;  ///< samples of the chunks of the first such batch
};

}  // namespace lockstep
