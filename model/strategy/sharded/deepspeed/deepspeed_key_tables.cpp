#include "model/strategy/sharded/deepspeed/deepspeed_key_tables.hpp"

namespace lockstep {

namespace {

using OffBy = UnmodelledDeepSpeedKey::Off;

constexpr std::string_view without_zero_plus_plus =
    "of ZeRO++ `zero_hpz_partition_size` is modelled";
constexpr std::string_view without_mics =
    "this is MiCS; stage 3 is modelled, and FSDPStrategy with sharding_strategy: HYBRID_SHARD";

}  // namespace

// deepspeed/runtime/zero/config.py, deepspeed/runtime/config.py.
const DeepSpeedKeys& read_deepspeed_keys() {
  static const DeepSpeedKeys keys = {"activation_checkpointing.partition_activations",
                                     "activation_checkpointing.cpu_checkpointing",
                                     "activation_checkpointing.contiguous_memory_optimization",
                                     "activation_checkpointing.synchronize_checkpoint_boundary",
                                     "activation_checkpointing.number_checkpoints",
                                     "activation_checkpointing.profile",
                                     "zero_optimization.stage",
                                     "zero_optimization.contiguous_gradients",
                                     "zero_optimization.reduce_scatter",
                                     "zero_optimization.reduce_bucket_size",
                                     "zero_optimization.use_multi_rank_bucket_allreduce",
                                     "zero_optimization.overlap_comm",
                                     "zero_optimization.round_robin_gradients",
                                     "zero_optimization.sub_group_size",
                                     "zero_optimization.stage3_prefetch_bucket_size",
                                     "zero_optimization.stage3_param_persistence_threshold",
                                     "zero_optimization.stage3_model_persistence_threshold",
                                     "zero_optimization.stage3_max_live_parameters",
                                     "zero_optimization.stage3_max_reuse_distance",
                                     "zero_optimization.zero_hpz_partition_size",
                                     "zero_optimization.ignore_unused_parameters",
                                     "zero_optimization.offload_optimizer.device",
                                     "zero_optimization.offload_optimizer.nvme_path",
                                     "zero_optimization.offload_optimizer.buffer_count",
                                     "zero_optimization.offload_optimizer.pipeline_read",
                                     "zero_optimization.offload_optimizer.pipeline_write",
                                     "zero_optimization.offload_param.device",
                                     "zero_optimization.offload_param.nvme_path",
                                     "zero_optimization.offload_param.buffer_count",
                                     "zero_optimization.offload_param.buffer_size",
                                     "zero_optimization.offload_param.max_in_cpu",
                                     "aio.block_size",
                                     "aio.intra_op_parallelism",
                                     "fp16.enabled",
                                     "fp16.loss_scale",
                                     "fp16.initial_scale_power",
                                     "fp16.loss_scale_window",
                                     "fp16.hysteresis",
                                     "fp16.min_loss_scale",
                                     "fp16.consecutive_hysteresis",
                                     "bf16.enabled",
                                     "bf16.check_grad_overflow",
                                     "communication_data_type",
                                     "data_types.grad_accum_dtype",
                                     "optimizer.type",
                                     "optimizer.legacy_fusion",
                                     "optimizer.params",
                                     "scheduler.type",
                                     "scheduler.params",
                                     "gradient_clipping",
                                     "gradient_predivide_factor",
                                     "prescale_gradients",
                                     "checkpoint.tag_validation"};
  return keys;
}

// What changes neither calls nor memory here, or what Lightning fills in.
const DeepSpeedKeys& ignored_deepspeed_keys() {
  static const DeepSpeedKeys keys = {"zero_optimization.allgather_bucket_size",
                                     "zero_optimization.allgather_partitions",
                                     "zero_optimization.load_from_fp32_weights",
                                     "zero_optimization.elastic_checkpoint",
                                     "zero_optimization.legacy_stage1",
                                     "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                                     "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                                     "zero_optimization.cpu_offload_use_pin_memory",
                                     "zero_optimization.memory_efficient_linear",
                                     "zero_optimization.override_module_apply",
                                     "zero_optimization.pipeline_loading_checkpoint",
                                     "zero_optimization.offload_optimizer.pin_memory",
                                     "zero_optimization.offload_optimizer.fast_init",
                                     "zero_optimization.offload_param.pin_memory",
                                     "aio.queue_depth",
                                     "aio.single_submit",
                                     "aio.overlap_events",
                                     "aio.thread_count",
                                     "fp16.auto_cast",
                                     "train_batch_size",
                                     "train_micro_batch_size_per_gpu",
                                     "steps_per_print",
                                     "wall_clock_breakdown",
                                     "zero_allow_untested_optimizer",
                                     "zero_force_ds_cpu_optimizer",
                                     "dump_state",
                                     "seq_parallel_communication_data_type",
                                     "dataloader_drop_last",
                                     "disable_allgather",
                                     "use_node_local_storage",
                                     "graph_harvesting",
                                     "timers",
                                     "nebula",
                                     "memory_breakdown",
                                     "comms_logger",
                                     "flops_profiler",
                                     "tensorboard",
                                     "wandb",
                                     "csv_monitor",
                                     "bf16.immediate_grad_update",
                                     "zero_optimization.log_trace_cache_warnings",
                                     "zero_optimization.save_muon_momentum_buffer_in_memory",
                                     "zero_optimization.offload_optimizer.cpuadam_cores_perc"};
  return keys;
}

const std::vector<UnmodelledDeepSpeedKey>& unmodelled_deepspeed_keys() {
  static const std::vector<UnmodelledDeepSpeedKey> keys = {
      {"zero_optimization.zero_quantized_weights", without_zero_plus_plus},
      {"zero_optimization.zero_quantized_gradients", without_zero_plus_plus},
      {"zero_optimization.zero_quantized_nontrainable_weights", without_zero_plus_plus},
      {"zero_optimization.mics_shard_size", without_mics},
      {"zero_optimization.mics_hierarchical_params_gather", without_mics},
      {"zero_optimization.offload_optimizer.ratio", "the whole optimizer offloaded is modelled"},
      {"zero_optimization.zeropp_loco_param", without_zero_plus_plus},
      {"zero_optimization.stage3_module_granularity_threshold",
       "parameters are fetched for each module"},
      {"zero_optimization.stage3_use_all_reduce_for_fetch_params",
       "parameters are fetched by all_gather"},
      {"sparse_gradients", "dense gradients are modelled"},
      {"sparse_attention"},
      {"data_types"},
      {"amp", "fp16 and bf16 by `precision` are modelled", OffBy::by_enabled},
      {"aio.use_gds", "reading and writing through host memory is modelled"},
      {"data_efficiency", "", OffBy::by_enabled},
      {"curriculum_learning", "", OffBy::by_enabled},
      {"elasticity", "", OffBy::by_enabled},
      {"autotuning", "", OffBy::by_enabled},
      {"compression_training"},
      {"pipeline"},
      {"checkpoint"},
      {"sequence_parallel_size"},
      {"tensor_parallel"},
      {"torch_autocast", "bf16 and fp16 by `precision` are modelled", OffBy::by_enabled},
      {"fp32_allreduce", "communication_data_type: fp32 is modelled"},
      {"eigenvalue", "", OffBy::by_enabled},
      {"progressive_layer_drop", "", OffBy::by_enabled},
      {"quantize_training"},
      {"compile"},
      {"hybrid_engine", "the engine that trains is modelled", OffBy::by_enabled},
      {"bf16.bf16_master_weights_and_grads", "the optimizer's copy in fp32 is modelled"},
      {"bf16.bf16_optimizer_states", "the optimizer's state in fp32 is modelled"},
      {"fp16.fp16_master_weights_and_grads", "the optimizer's copy in fp32 is modelled"},
      {"zero_optimization.zenflow", "an optimizer that all gradients reach is modelled",
       OffBy::by_absence},
      {"zero_optimization.compute_grad_norm", "a step with the norm is modelled", OffBy::by_true},
      {"zero_optimization.stage3_allgather_sequential",
       "an all_gather of a module's parameters is modelled"},
      {"zero_optimization.parameter_alignment", "parameters one behind the other are modelled"},
      {"zero_optimization.enable_sanity_checks", "it compares lists among all ranks"},
      {"zero_optimization.leaf_module", "parameters are fetched for each module"},
      {"zero_optimization.offload_optimizer.super_offload",
       "the optimizer offloaded by DeepSpeedCPUAdam is modelled"}};
  return keys;
}

}  // namespace lockstep
