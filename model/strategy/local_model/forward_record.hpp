#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/network/network.hpp"
#include "model/program/rank.hpp"
#include "model/strategy/local_model/context_run.hpp"
#include "model/strategy/local_model/expert_run.hpp"
#include "model/strategy/local_model/layer_run.hpp"
#include "model/strategy/local_model/sample_comparison.hpp"
#include "model/strategy/local_model/skip_connection.hpp"

namespace lockstep {

/// What the loss of a forward leaves for its backward.
struct LossRecord {
  Slice kept;
  Slice greatest_scores;        ///< of each row, where ranks have parts of the classes
  Slice score_sums;             ///< the same: of their exponentials
  SampleComparison comparison;  ///< where the loss compares samples
  double factor = 1;            ///< of its backward
};

/// What a forward leaves for its backward.
struct ForwardRecord {
  int64_t number = 0;  ///< of the replica's forwards, from 1
  DeviceId device{};   ///< on which it runs
  int64_t samples = 0;
  size_t last_module = 0;
  size_t first_wanted_layer = 0;         ///< that has a parameter which gets a gradient
  std::optional<size_t> only_optimizer;  ///< whose parameters alone get one
  Slice input;
  Slice target;
  LossRecord loss;
  std::vector<ExpertRun> expert_runs;
  std::vector<ContextRun> context_runs;
  std::vector<ParameterPlace> unused{};             ///< of experts that got no token
  std::vector<std::pair<size_t, Slice>> choices{};  ///< by layer, of a training
  std::vector<Slice> transient;                     ///< freed with the forward
  std::vector<LayerRun> trace;                      ///< in the order of layers
  std::vector<SkipConnection> residuals;
  std::vector<uint32_t> open_residuals;
  const CheckpointedSegment* recomputed = nullptr;  ///< whose backward is under way
  Slice current;                                    ///< activation that the next layer reads
  Slice gradient;                                   ///< gradient that the next backward reads

  /// Of a layer that ran.
  LayerRun& run_of(size_t layer);
  std::span<LayerRun> runs_of(const CheckpointedSegment& segment);
  /// Layers through which its backward goes, last first.
  std::vector<size_t> layers_last_to_first() const;
  bool wants_input_gradient(size_t layer) const { return layer > first_wanted_layer; }
  bool is_unused(const ParameterPlace& parameter) const;

  /// Memory that is freed with the forward.
  Slice allocate_transient(Rank& rank, int64_t elements, DType dtype);
  /// Frees the outputs inside of a segment. That of the segment is kept: it is the input of the
  /// next layer.
  void forget_inside(Rank& rank, const CheckpointedSegment& segment);
  /// Frees what it kept.
  void release(Rank& rank);
};

/// Frees the memory, where there is some.
void forget(Rank& rank, Slice& memory);

}  // namespace lockstep
