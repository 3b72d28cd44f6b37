#include <array>
#include <vector>

#include "io/scenario/classes/catalogue_tables.hpp"
#include "model/strategy/registry.hpp"

// Names and arguments as in Lightning 1.5 to 2.6 (pytorch_lightning/strategies, callbacks, loggers,
// profilers, plugins), the union over the versions; which of them a version has is decided where
// the trainer is built. The arguments of strategies that are modelled stand in model/strategy.

namespace lockstep {
namespace {

constexpr auto strategies = std::to_array<ClassRow>({
    {"auto", ""},
    {"single_device", ""},
    {"SingleDeviceStrategy", ""},
    {"dp", ""},
    {"DataParallelStrategy", ""},
    {"ddp", ""},
    {"ddp_find_unused_parameters_true", ""},
    {"ddp_find_unused_parameters_false", ""},
    {"ddp_spawn", ""},
    {"ddp_spawn_find_unused_parameters_true", ""},
    {"ddp_spawn_find_unused_parameters_false", ""},
    {"ddp_fork", ""},
    {"ddp_fork_find_unused_parameters_true", ""},
    {"ddp_fork_find_unused_parameters_false", ""},
    {"ddp_notebook", ""},
    {"ddp_notebook_find_unused_parameters_true", ""},
    {"ddp_notebook_find_unused_parameters_false", ""},
    {"DDPStrategy", ""},
    {"DDPSpawnStrategy", ""},
    {"ddp2", ""},
    {"DDP2Strategy", ""},
    {"ddp_sharded", ""},
    {"ddp_sharded_find_unused_parameters_false", ""},
    {"ddp_sharded_spawn", ""},
    {"ddp_sharded_spawn_find_unused_parameters_false", ""},
    {"DDPShardedStrategy", ""},
    {"DDPSpawnShardedStrategy", ""},
    {"fsdp", ""},
    {"ddp_fully_sharded", ""},
    {"DDPFullyShardedStrategy", ""},
    {"fsdp_native", ""},
    {"fsdp_native_full_shard_offload", ""},
    {"DDPFullyShardedNativeStrategy", ""},
    {"fsdp_cpu_offload", ""},
    {"FSDPStrategy", ""},
    {"ModelParallelStrategy", ""},
    {"deepspeed", ""},
    {"deepspeed_stage_1", ""},
    {"deepspeed_stage_2", ""},
    {"deepspeed_stage_2_offload", ""},
    {"deepspeed_stage_3", ""},
    {"deepspeed_stage_3_offload", ""},
    {"deepspeed_stage_3_offload_nvme", ""},
    {"DeepSpeedStrategy", ""},
    {"horovod", ""},
    {"HorovodStrategy", ""},
    {"bagua", ""},
    {"BaguaStrategy", ""},
    {"xla", ""},
    {"xla_debug", ""},
    {"XLAStrategy", ""},
    {"tpu_spawn_debug", ""},
    {"TPUSpawnStrategy", ""},
    {"single_xla", ""},
    {"SingleDeviceXLAStrategy", ""},
    {"single_tpu", ""},
    {"SingleTPUStrategy", ""},
    {"naive_model_parallel", ""},
    {"NaiveModelParallelStrategy", ""},
    {"pipeline", ""},
    {"PipelineStrategy", ""},
    {"MegatronStrategy", ""},
    {"torchtitan", ""},
    {"TorchTitan", ""},
    {"parameter_server", ""},
    {"ParameterServerStrategy", ""},
});

constexpr auto callbacks = std::to_array<ClassRow>({
    {"EarlyStopping",
     "monitor:text min_delta:float patience:int verbose:bool mode:text strict:bool "
     "check_finite:bool stopping_threshold:float divergence_threshold:float "
     "check_on_train_epoch_end:bool log_rank_zero_only:bool"},
    {"ModelCheckpoint",
     "dirpath:text filename:text monitor:text verbose:bool save_last save_top_k:int "
     "save_weights_only:bool mode:text auto_insert_metric_name:bool every_n_train_steps:int "
     "train_time_interval every_n_epochs:int save_on_train_epoch_end:bool "
     "enable_version_counter:bool save_on_exception:bool"},
    {"OnExceptionCheckpoint", "dirpath:text filename:text"},
    {"LearningRateMonitor", "logging_interval:text log_momentum:bool log_weight_decay:bool"},
    {"StochasticWeightAveraging",
     "swa_lrs swa_epoch_start annealing_epochs:int annealing_strategy:text device:text"},
    {"GradientAccumulationScheduler", "scheduling:map"},
    {"Timer", "duration interval:text verbose:bool"},
    {"LearningRateFinder",
     "min_lr:float max_lr:float num_training_steps:int mode:text early_stop_threshold:float "
     "update_attr:bool attr_name:text"},
    {"BatchSizeFinder",
     "mode:text steps_per_trial:int init_val:int max_trials:int batch_arg_name:text"},
    {"ModelSummary", "max_depth:int"},
    {"RichModelSummary", "max_depth:int"},
    {"TQDMProgressBar", "refresh_rate:int process_position:int leave:bool"},
    {"RichProgressBar", "refresh_rate:int leave:bool"},
    {"DeviceStatsMonitor", "cpu_stats:bool"},
    {"BackboneFinetuning",
     "unfreeze_backbone_at_epoch:int lambda_func backbone_initial_ratio_lr:float "
     "backbone_initial_lr:float should_align:bool initial_denom_lr:float train_bn:bool "
     "verbose:bool rounding:int"},
    {"ModelPruning",
     "pruning_fn:text parameters_to_prune:list parameter_names:list "
     "use_global_unstructured:bool amount apply_pruning:bool make_pruning_permanent:bool "
     "use_lottery_ticket_hypothesis:bool resample_parameters:bool pruning_dim:int "
     "pruning_norm:int verbose:int prune_on_train_epoch_end:bool"},
    {"WeightAveraging", "device use_buffers:bool"},
    {"EMAWeightAveraging",
     "device use_buffers:bool decay:float update_every_n_steps:int update_starting_at_step:int "
     "update_starting_at_epoch:int"},
    {"ThroughputMonitor", "batch_size_fn length_fn window_size:int"},
    {"SpikeDetection",
     "mode:text window:int warmup:int atol:float rtol:float exclude_batches_path:text "
     "finite_only:bool"},
});

constexpr auto loggers = std::to_array<ClassRow>({
    {"CSVLogger", "save_dir:text name:text version prefix:text flush_logs_every_n_steps:int"},
    {"TensorBoardLogger",
     "save_dir:text name:text version log_graph:bool default_hp_metric:bool prefix:text "
     "sub_dir:text"},
    {"WandbLogger",
     "name:text save_dir:text version:text offline:bool project:text log_model prefix:text"},
    {"MLFlowLogger",
     "experiment_name:text run_name:text tracking_uri:text tags:map save_dir:text log_model "
     "prefix:text run_id:text"},
    {"CometLogger",
     "api_key:text save_dir:text project_name:text experiment_name:text offline:bool "
     "prefix:text"},
    {"NeptuneLogger", "api_key:text project:text name:text prefix:text"},
});

constexpr auto profilers = std::to_array<ClassRow>({
    {"simple", ""},
    {"advanced", ""},
    {"pytorch", ""},
    {"SimpleProfiler", "dirpath:text filename:text extended:bool"},
    {"AdvancedProfiler", "dirpath:text filename:text line_count_restriction:float"},
    {"PyTorchProfiler",
     "dirpath:text filename:text group_by_input_shapes:bool emit_nvtx:bool "
     "export_to_chrome:bool row_limit:int sort_by_key:text record_module_names:bool"},
    {"PassThroughProfiler", ""},
});

constexpr auto plugins = std::to_array<ClassRow>({
    {"MixedPrecision", "precision:text device:text scaler"},
    {"MixedPrecisionPlugin", "precision:text device:text scaler"},
    {"DoublePrecision", ""},
    {"HalfPrecision", "precision:text"},
    {"FSDPPrecision", "precision:text scaler"},
    {"DeepSpeedPrecision", "precision:text"},
    {"TorchSyncBatchNorm", ""},
    {"NativeSyncBatchNorm", ""},
    {"AsyncCheckpointIO", "checkpoint_io"},
    {"TorchCheckpointIO", ""},
    {"LightningEnvironment", ""},
    {"SLURMEnvironment", "auto_requeue:bool requeue_signal:text"},
    {"TorchElasticEnvironment", ""},
    {"MPIEnvironment", ""},
    {"LSFEnvironment", ""},
    {"KubeflowEnvironment", ""},
});

}  // namespace

std::span<const ClassRow> strategy_classes() {
  static const StrategyRegistry registry = standard_strategies();
  static const std::vector<ClassRow> rows = [] {
    std::vector<ClassRow> filled(strategies.begin(), strategies.end());
    for (ClassRow& row : filled) {
      if (const auto* arguments = registry.arguments_of_class(row.name)) {
        row.of_strategy = *arguments;
      }
    }
    return filled;
  }();
  return rows;
}
std::span<const ClassRow> callback_classes() { return callbacks; }
std::span<const ClassRow> logger_classes() { return loggers; }
std::span<const ClassRow> profiler_classes() { return profilers; }
std::span<const ClassRow> plugin_classes() { return plugins; }

}  // namespace lockstep
