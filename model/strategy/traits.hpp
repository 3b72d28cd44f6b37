#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Which process drives which devices.
enum class ProcessLayout : uint8_t {
  one_device_each,      ///< a process for each device (ddp)
  one_for_one_device,   ///< one process and one device (single)
  one_for_all_devices,  ///< one process drives all devices of its node (dp)
  one_for_each_node,    ///< the same in every node (ddp2)
};

/// Which values of `precision` Lightning lets a strategy take.
enum class Precisions : uint8_t {
  all,
  no_double,             ///< FSDP and DeepSpeed: neither 64-true nor Transformer Engine
  no_double_nor_scaler,  ///< ModelParallelStrategy: not 16-mixed either
};

/// What `clip_gradients` of a module does under a strategy: its precision plugin decides.
enum class ManualClipping : uint8_t {
  clips,
  ignored,       ///< DeepSpeed: its engine alone clips, by its own configuration
  norm_refused,  ///< FSDPPrecision: by value it clips
};

/// Who multiplies the loss under `16-mixed`, so that small gradients do not vanish in 16 bits.
enum class LossScaling : uint8_t {
  not_modelled,  ///< the gradients that the step gets are as without a factor
  of_trainer,    ///< torch's GradScaler: the strategy's step goes through scaled_step.hpp
  of_strategy,   ///< the engine's own scaler
};

/// What a strategy makes of `sync_batchnorm`, which Lightning hands to all of them.
enum class StatisticsSharing : uint8_t {
  not_modelled,
  converts,  ///< batch norms become torch's SyncBatchNorm for a fit
  ignored,   ///< nothing looks at it
};

/// What is known of a strategy before any of its ranks runs: the trainer, the checks of a scenario
/// and the advice ask for these and never for a strategy's name.
struct StrategyTraits {
  ProcessLayout layout = ProcessLayout::one_device_each;
  Precisions precisions = Precisions::all;
  /// Its processes wrap the model in DistributedDataParallel, whose arguments have Lightning's
  /// defaults.
  bool wraps_in_ddp = false;
  bool needs_gpu = false;       ///< Lightning refuses it without GPUs of CUDA
  bool drives_xla = false;      ///< of TPUs, which no other strategy can use
  bool one_node = false;        ///< it never leaves its node
  bool divides_samples = true;  ///< among the devices of a process; else its layers are
  bool clips_by_norm = true;    ///< by `gradient_clip_val` of the Trainer
  bool clips_by_value = true;   ///< by `gradient_clip_algorithm: value`
  ManualClipping manual_clipping = ManualClipping::clips;
  StatisticsSharing statistics = StatisticsSharing::not_modelled;
  /// Its engine counts micro-batches and divides the loss by them, whatever Lightning does beside.
  bool accumulates_itself = false;
  /// Batches that are accumulated without an exchange leave the gradients of all parameters on each
  /// rank, which else keeps its part of them.
  bool accumulates_whole_gradients = false;
  /// The forward of a training runs the backward, too: the schedule of a pipeline does both.
  bool backward_in_forward = false;
  /// torch.distributed's world are the ranks among which a batch is divided: each has the whole
  /// forward of its own samples, so that a loss may gather those of all.
  bool world_is_data_parallel = false;
  LossScaling loss_scaling = LossScaling::not_modelled;
  /// Weights of all experts of a mixture are one parameter, however the model writes them.
  bool groups_experts = false;
  bool has_host_optimizer = false;  ///< DeepSpeedCPUAdam
  bool takes_apex = true;           ///< `amp_backend: apex` of 1.x
  /// Each rank holds parameters and the optimizer's state whole, so that rank 0's are all of them.
  bool holds_whole_state = false;
  /// What an optimizer does there that takes norms of tensors (Lamb, Adafactor) is modelled.
  bool takes_tensor_norms = false;
  /// LightningModule.all_gather puts the rows of all ranks behind each other: hvd.allgather does,
  /// without torch.distributed.
  bool gathers_rows = false;
  /// What a script calls to read parameters of which each rank holds a part; empty: nothing is
  /// known.
  std::string_view gathers_parameters{};

  bool is_one_process() const {
    return layout == ProcessLayout::one_for_one_device ||
           layout == ProcessLayout::one_for_all_devices;
  }
  bool drives_all_devices() const {
    return layout == ProcessLayout::one_for_all_devices ||
           layout == ProcessLayout::one_for_each_node;
  }
};

}  // namespace lockstep
