#include "backend/libtorch/layer_graph.hpp"

#include <algorithm>

#include "backend/libtorch/kernels_tensor.hpp"

namespace lockstep::backend {

bool LayerGraph::fits(const Values& input_values, std::span<const Values> parameter_values) const {
  return holds(input, input_values) &&
         std::ranges::equal(
             parameters, parameter_values,
             [](const at::Tensor& tensor, const Values& values) { return holds(tensor, values); });
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
