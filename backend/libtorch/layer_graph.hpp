#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/values.hpp"

namespace lockstep::backend {

/// What a forward of a layer leaves for its backward. The leaves are detached; their memory holds
/// the values as they were.
struct LayerGraph {
  at::Tensor input{};
  std::vector<at::Tensor> parameters{};
  at::Tensor output{};

  /// Made of exactly these values, so that its gradients are theirs.
  bool fits(const Values& input_values, std::span<const Values> parameter_values) const;
};

/// The graphs that wait for their backward. A graph is replaced by the next forward of its layer on
/// the same input slice; of one layer the oldest beyond `most_graphs_of_layer` goes, which costs
/// its backward a second forward.
class KeptGraphs {
 public:
  /// Micro-batches that a pipeline may have in flight on one rank.
  static constexpr size_t most_graphs_of_layer = 64;

  void keep(int32_t layer, const Slice& input, LayerGraph graph);
  std::optional<LayerGraph> take(int32_t layer, const Slice& input);

 private:
  struct Kept {
    Slice input{};
    LayerGraph graph{};
  };
  std::mutex mutex_;
  std::map<int32_t, std::deque<Kept>> of_layer_;  ///< oldest first
};

}  // namespace lockstep::backend
