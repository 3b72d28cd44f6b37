#include "model/strategy/data_parallel/xla/graph_cache.hpp"

#include <algorithm>

namespace lockstep {

void GraphCache::begin_batch() { mark_step(); }

CompiledGraph& GraphCache::current() {
  if (!recorded_) {
    recorded_ = CompiledGraph{};
    recorded_->forwards = 0;
  }
  return *recorded_;
}

void GraphCache::record_forward(bool training, int64_t samples) {
  CompiledGraph& graph = current();
  graph.training = training;
  graph.samples = samples;
  ++graph.forwards;
}

void GraphCache::record_backward(bool adds_gradients) {
  current().adds_gradients |= adds_gradients;
}

void GraphCache::record_update(bool makes_state) {
  CompiledGraph& graph = current();
  graph.updates = true;
  graph.makes_state = makes_state;
  mark_step();
}

void GraphCache::mark_step() {
  if (recorded_ && std::ranges::find(compiled_, *recorded_) == compiled_.end()) {
    compiled_.push_back(*recorded_);
  }
  recorded_.reset();
}

std::vector<CompiledGraph> GraphCache::graphs() const {
  GraphCache all = *this;
  all.mark_step();
  return all.compiled_;
}

}  // namespace lockstep
