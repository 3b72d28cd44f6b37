#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/core/buffer.hpp"

namespace lockstep::backend {

/// A tensor that a graph was made of, detached, and how often it had been written to then.
struct Leaf {
  explicit Leaf(at::Tensor of) : tensor(std::move(of)), version(tensor._version()) {}

  /// Still holds what it held, and so does `now`: the same memory not written to since, or a copy
  /// with the same bytes. What lies elsewhere on a GPU counts as different.
  bool holds(const at::Tensor& now) const;

  at::Tensor tensor;
  int64_t version;
};

/// Tensors that a layer's forward keeps for its backward.
struct LayerGraph {
  std::vector<Leaf> leaves{};  ///< input, parameters..
  at::Tensor output{};

  /// Made of exactly these values, so that its gradients are theirs.
  bool fits(std::span<const at::Tensor> reads) const;
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
