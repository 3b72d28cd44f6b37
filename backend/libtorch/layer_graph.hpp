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

/// What a layer reads now: the memory, where it lies, and its identity (ContentIdentities).
struct LeafSource {
  at::Tensor memory{};
  Slice slice{};
  uint64_t identity = 0;  ///< 0: not known
};

/// A tensor that a graph was made of, and what it was when it was made.
class Leaf {
 public:
  /// `tensor` is a view of the memory. A parameter that `has_own_storage` can be released and
  /// pointed at other memory, with all that the graph has saved of it.
  Leaf(at::Tensor tensor, const LeafSource& source, bool has_own_storage);

  /// Still holds what it held, and so does `now`: the same memory not written to since, memory with
  /// the same identity, or a copy on the CPU with the same bytes.
  bool holds(const LeafSource& now) const;
  /// Drops the memory, if it is in the buffer and its content could be known again.
  void release(BufferId buffer);
  /// Takes the memory of `now`, which it holds, where its own was dropped.
  void point_at(const LeafSource& now) const;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
  at::Tensor memory_;  ///< none: dropped
  Slice slice_;
  uint64_t identity_;
  int64_t version_;
  bool has_own_storage_;
};

/// A tensor over the same memory whose storage is its own.
at::Tensor with_own_storage(const at::Tensor& memory);

/// Tensors that a layer's forward keeps for its backward.
struct LayerGraph {
  std::vector<Leaf> leaves{};  ///< input, parameters..
  at::Tensor output{};
  at::Tensor auxiliary{};  ///< a loss that the layer adds, not yet times the loss's factor

  /// Made of exactly these values, so that its gradients are theirs.
  bool fits(std::span<const LeafSource> reads) const;
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
  /// The buffer is given back: graphs do not keep its memory where they can do without.
  void released(BufferId buffer);

 private:
  struct Kept {
    Slice input{};
    LayerGraph graph{};
  };
  std::mutex mutex_;
  std::map<int32_t, std::deque<Kept>> of_layer_;  ///< oldest first
};

}  // namespace lockstep::backend
