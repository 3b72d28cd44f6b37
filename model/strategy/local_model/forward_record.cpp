#include "model/strategy/local_model/forward_record.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"

namespace lockstep {

LayerRun& ForwardRecord::run_of(size_t layer) {
  // Layers run in definition order, so the trace is sorted.
  const auto run = std::ranges::lower_bound(trace, layer, {}, &LayerRun::layer);
  ensure(run != trace.end() && run->layer == layer, "a layer that ran");
  return *run;
}

std::span<LayerRun> ForwardRecord::runs_of(const CheckpointedSegment& segment) {
  const auto begin = std::ranges::lower_bound(trace, segment.first, {}, &LayerRun::layer);
  const auto end = std::ranges::upper_bound(trace, segment.last, {}, &LayerRun::layer);
  return {begin, end};
}

std::vector<size_t> ForwardRecord::layers_last_to_first() const {
  std::vector<size_t> layers;
  for (auto run = trace.rbegin(); run != trace.rend(); ++run) {
    if (run->layer >= first_wanted_layer) {
      layers.push_back(run->layer);
    }
  }
  return layers;
}

bool ForwardRecord::is_unused(const ParameterPlace& parameter) const {
  return !unused.empty() && std::ranges::count(unused, parameter) != 0;
}

Slice ForwardRecord::allocate_transient(Rank& rank, int64_t elements, DType dtype) {
  transient.push_back(rank.allocate(Purpose::workspace, dtype, elements, device));
  return transient.back();
}

void ForwardRecord::forget_inside(Rank& rank, const CheckpointedSegment& segment) {
  const std::span<LayerRun> runs = runs_of(segment);
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    forget(rank, runs[i].output);
  }
}

void LayerRun::forget_kept(Rank& rank) {
  forget(rank, kept);
  if (rare_) {
    forget(rank, rare_->recomputed);
    forget(rank, rare_->weight_copies);
  }
}

void ForwardRecord::release(Rank& rank) {
  for (LayerRun& run : trace) {
    run.forget_kept(rank);
    forget(rank, run.output);
  }
  forget(rank, loss.kept);
  forget(rank, loss.greatest_scores);
  forget(rank, loss.score_sums);
  loss.comparison.forget(rank);
  for (const Slice& memory : transient) {
    rank.release(memory);
  }
  trace.clear();
  transient.clear();
  residuals.clear();
  open_residuals.clear();
  recomputed = nullptr;
}

void forget(Rank& rank, Slice& memory) {
  if (memory.buffer != no_buffer) {
    rank.release(std::exchange(memory, Slice{}));
  }
}

}  // namespace lockstep
