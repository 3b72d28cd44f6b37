#include "backend/libtorch/layer_graph.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace lockstep::backend {

Leaf::Leaf(at::Tensor tensor, const LeafSource& source, bool has_own_storage)
    : tensor_(std::move(tensor)),
      memory_(source.memory),
      slice_(source.slice),
      identity_(source.identity),
      version_(source.memory._version()),
      has_own_storage_(has_own_storage) {}

bool Leaf::holds(const LeafSource& now) const {
  if (tensor_.scalar_type() != now.memory.scalar_type() || tensor_.numel() != now.memory.numel()) {
    return false;
  }
  const bool is_known = identity_ != 0 && identity_ == now.identity;
  if (!memory_.defined()) {
    return is_known;
  }
  if (memory_._version() != version_) {
    return false;
  }
  return is_known || memory_.const_data_ptr() == now.memory.const_data_ptr() ||
         (memory_.is_cpu() && now.memory.is_cpu() &&
          std::memcmp(memory_.const_data_ptr(), now.memory.const_data_ptr(), memory_.nbytes()) ==
              0);
}

void Leaf::release(BufferId buffer) {
  const bool can_come_back = has_own_storage_ && identity_ != 0 && memory_.defined();
  if (can_come_back && slice_.buffer == buffer && memory_._version() == version_) {
    tensor_.storage().set_data_ptr_noswap(at::DataPtr(nullptr, tensor_.device()));
    memory_ = at::Tensor();
  }
}

void Leaf::point_at(const LeafSource& now) const {
  if (!memory_.defined()) {
    const at::Tensor other = with_own_storage(now.memory);
    tensor_.storage().set_data_ptr_noswap(
        other.storage().set_data_ptr(at::DataPtr(nullptr, tensor_.device())));
  }
}

at::Tensor with_own_storage(const at::Tensor& memory) {
  return at::from_blob(
      memory.data_ptr(), memory.sizes(), [memory](void*) {}, memory.options(), memory.device());
}

bool LayerGraph::fits(std::span<const LeafSource> reads) const {
  return std::ranges::equal(
      leaves, reads, [](const Leaf& leaf, const LeafSource& now) { return leaf.holds(now); });
}

void KeptGraphs::released(BufferId buffer) {
  const std::lock_guard lock(mutex_);
  for (auto& [layer, kept] : of_layer_) {
    for (Kept& each : kept) {
      for (Leaf& leaf : each.graph.leaves) {
        leaf.release(buffer);
      }
    }
  }
}

void KeptGraphs::keep(int32_t layer, const Slice& input, LayerGraph graph) {
  std::deque<Kept> gone;  // destroyed after the lock: a graph may hold much memory
  const std::lock_guard lock(mutex_);
  std::deque<Kept>& kept = of_layer_[layer];
  const auto same = std::ranges::find(kept, input, &Kept::input);
  if (same != kept.end()) {
    gone.push_back(std::move(*same));
    kept.erase(same);
  } else if (kept.size() == most_graphs_of_layer) {
    gone.push_back(std::move(kept.front()));
    kept.pop_front();
  }
  kept.push_back({input, std::move(graph)});
}

std::optional<LayerGraph> KeptGraphs::take(int32_t layer, const Slice& input) {
  const std::lock_guard lock(mutex_);
  std::deque<Kept>& kept = of_layer_[layer];
  const auto found = std::ranges::find(kept, input, &Kept::input);
  if (found == kept.end()) {
    return std::nullopt;
  }
  std::optional<LayerGraph> graph(std::move(found->graph));
  kept.erase(found);
  return graph;
}

}  // namespace lockstep::backend
