#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// What is laid out over ranks, as far as layouts depend on it.
struct LayoutTask {
  int32_t ranks = 1;
  int32_t ranks_per_node = 1;
  int64_t samples = 1;            ///< of one optimizer step
  int64_t blocks = 0;             ///< that repeat in the model: what stages are cut by
  int64_t parameters = 0;         ///< elements
  Bytes parameter_bytes{4};       ///< of one, and of its gradient
  Bytes state_bytes{8};           ///< that the optimizer keeps of one
  Bytes device_memory{};          ///< 0: not known
  bool cuts_layers = false;       ///< an automatic plan for tensor parallelism finds something
  bool marks_checkpoints = true;  ///< the scenario leaves activation checkpointing open
};

/// One way to divide a training among ranks.
struct Layout {
  std::string strategy;      ///< as `trainer.strategy` takes it
  std::string description;   ///< "FSDP", "pipeline of 4 (1F1B) x tensor 2 x data 8"
  int64_t replicas = 1;      ///< of the model, each of which gets other samples
  int64_t batch_size = 1;    ///< of a loader: of each rank or replica
  int64_t accumulated = 1;   ///< batches of one optimizer step
  int64_t micro_batch = 1;   ///< samples of one forward
  bool checkpoints = false;  ///< activation_checkpointing: full
  Bytes model_states{};      ///< parameters, gradients and optimizer state of a rank, at least
  int64_t family = 0;        ///< layouts that differ in the micro-batch alone have the same

  /// KEY=VALUE of each key that it sets.
  std::vector<std::string> settings(const LayoutTask& task) const;
};

/// Layouts that keep the samples of a step: data parallelism with and without divided states (ddp,
/// ZeRO, FSDP), tensor parallelism within a node, pipelines, and their products; micro-batches of
/// powers of two; with and without activation checkpointing. Larger micro-batches
/// come first within a family: there are fewer of them in a step, which costs less to simulate.
std::vector<Layout> layouts_of(const LayoutTask& task);

/// What layouts_of() leaves out, for the user.
std::vector<std::string> not_tried();

}  // namespace lockstep::cli
