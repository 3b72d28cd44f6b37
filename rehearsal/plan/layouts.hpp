#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// What runs again in the backward (`model.activation_checkpointing`).
enum class Recompute : uint8_t { none, selective, full };
std::string_view name_of(Recompute recompute);

/// How long the kernels of one micro-batch take at least on one of the ranks that compute layers
/// and positions of a replica together, forward and backward.
struct LeastTimes {
  Time blocks{};      ///< all blocks that repeat
  Time others{};      ///< all other layers
  Time blocks_again;  ///< the forward of the blocks
};

/// Activations of a sample that one of the ranks that compute layers together keeps for their
/// backward.
struct KeptActivations {
  Bytes of_blocks[3]{};  ///< of all that repeat, by Recompute
  Bytes of_others{};     ///< of all other layers and the loss
};

/// What bounds a layout from below. All zero: nothing is known, and no layout is left out by it.
struct LayoutBounds {
  std::function<LeastTimes(int64_t micro_batch, int32_t tensor, int32_t context)> times{};
  /// By the number of tensor ranks: of an automatic plan, and as Megatron-LM cuts layers.
  std::map<int32_t, KeptActivations> kept{};
  std::map<int32_t, KeptActivations> kept_by_megatron{};
  Bytes between_blocks{};  ///< the activation of a sample
  /// Of so many tensor ranks, how often it travels between them in a forward and its backward.
  std::map<int32_t, int64_t> exchanges{};
  BytesPerSecond between_devices{};  ///< of a node, of one device
  BytesPerSecond between_nodes{};    ///< of one node
};

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
  bool has_cores = false;         ///< attention whose core alone may run again
  bool is_megatron = false;       ///< a model and an optimizer that MegatronStrategy takes
  int64_t positions = 0;          ///< of a sample, that ranks may divide
  int64_t experts = 0;            ///< of each mixture
  int64_t expert_parameters = 0;  ///< elements of all experts
  LayoutBounds bounds{};
};

/// One way to divide a training among ranks.
struct Layout {
  std::string strategy;     ///< as `trainer.strategy` takes it
  std::string description;  ///< "FSDP", "pipeline of 4 (1F1B) x tensor 2 x data 8"
  int64_t replicas = 1;     ///< of the model, each of which gets other samples
  int64_t batch_size = 1;   ///< of a loader: of each rank or replica
  int64_t accumulated = 1;  ///< batches of one optimizer step
  int64_t micro_batch = 1;  ///< samples of one forward
  Recompute recompute = Recompute::none;
  int32_t stages = 1;  ///< ranks of a pipeline
  int32_t stages_per_rank = 1;
  int32_t tensor = 1;    ///< ranks that compute each layer together
  int32_t context = 1;   ///< ranks that divide positions
  bool gathers = false;  ///< parameters, from all nodes, in every forward
  bool is_megatron = false;
  Bytes model_states{};  ///< parameters, gradients and optimizer state of a rank, at least
  Bytes least_memory{};  ///< the same with activations; 0: not known
  Time least_time{};     ///< of a step; 0: not known
  /// What a simulation of it costs, by blocks of micro-batches on ranks that are simulated.
  int64_t simulated_blocks = 0;
  int64_t family = 0;  ///< layouts that differ in the micro-batch alone have the same

  /// KEY=VALUE of each key that it sets.
  std::vector<std::string> settings(const LayoutTask& task) const;
};

/// Layouts that keep the samples of a step: data parallelism with and without divided states (ddp,
/// ZeRO, FSDP), tensor parallelism within a node, pipelines, and their products; Megatron-LM's
/// products with divided positions and experts, and a divided optimizer; micro-batches of powers of
/// two; each kind of activation checkpointing. Larger micro-batches come first within a family:
/// there are fewer of them in a step, which costs less to simulate.
std::vector<Layout> layouts_of(const LayoutTask& task);

/// What layouts_of() leaves out, for the user.
std::vector<std::string> not_tried();

}  // namespace lockstep::cli
