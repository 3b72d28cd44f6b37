#include "backend/libtorch/layer_graph.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::backend {

bool Leaf::holds(const at::Tensor& now) const {
  if (tensor._version() != version || tensor.scalar_type() != now.scalar_type() ||
      tensor.numel() != now.numel()) {
    return false;
  }
  return tensor.const_data_ptr() == now.const_data_ptr() ||
         (tensor.is_cpu() && now.is_cpu() &&
          std::memcmp(tensor.const_data_ptr(), now.const_data_ptr(), tensor.nbytes()) == 0);
}

bool LayerGraph::fits(std::span<const at::Tensor> reads) const {
  return std::ranges::equal(
      leaves, reads, [](const Leaf& leaf, const at::Tensor& now) { return leaf.holds(now); });
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
