#pragma once

#include <optional>
#include <vector>

#include "model/strategy/compiled_graph.hpp"

namespace lockstep {

/// The graphs of one process that XLA compiles. Operations are recorded until mark_step; a graph
/// that was recorded before is found in the cache, whatever the values are.
class GraphCache {
 public:
  /// A batch has come: MpDeviceLoader marks a step before it hands one over.
  void begin_batch();
  void record_forward(bool training, int64_t samples);
  /// A backward that adds to what earlier batches of the window have left is another graph.
  void record_backward(bool adds_gradients);
  /// The optimizer steps, and its plugin marks a step. `makes_state`: it had none before.
  void record_update(bool makes_state);

  /// Those that were compiled so far, with the one that is being recorded.
  std::vector<CompiledGraph> graphs() const;

 private:
  CompiledGraph& current();
  void mark_step();

  std::vector<CompiledGraph> compiled_;  ///< in the order of first use
  std::optional<CompiledGraph> recorded_;
};

}  // namespace lockstep
