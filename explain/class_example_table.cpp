#include "explain/class_example_table.hpp"

namespace lockstep::cli {

namespace {

using enum ObjectRole;

constexpr std::string_view up_to_1_6 = "versions: {lightning: \"1.6\"}";
constexpr std::string_view up_to_1_9 = "versions: {lightning: \"1.9\"}";
constexpr std::string_view torch_1 = "versions: {lightning: \"1.9\", torch: \"1.13\"}";
constexpr std::string_view validated_alone =
    "versions: {lightning: \"1.9\"}\n"
    "model: {input: [2], layers: [{Linear: {in_features: 2, out_features: 1, initial: {weight: "
    "[[0.5, -0.5]], bias: [0]}}}]}\n"
    "data: {val: {samples: 32, batch_size: 8}}\n"
    "program: {main: [validate], validation_step: [forward]}";
constexpr std::string_view raises_in_fit =
    "FairScale has no find_unused_parameters, so that every fit raises; a validation does not";
constexpr std::string_view of_tpus = "cluster: {preset: tpu-v3-8, nodes: 1}";
constexpr std::string_view of_tpus_up_to_1_9 =
    "cluster: {preset: tpu-v3-8, nodes: 1}\nversions: {lightning: \"1.9\"}";

constexpr std::string_view stepped_by_hook = "program: {lr_scheduler_step: [lr_scheduler_step]}";

constexpr ClassExample class_example_rows[] = {
    {optimizer, "SGD", "{lr: 0.1, momentum: 0.9}"},
    {optimizer, "Adam", "{lr: 0.001}"},
    {optimizer, "AdamW", "{lr: 3e-4, weight_decay: 0.1}"},
    {optimizer, "DeepSpeedCPUAdam", "{lr: 3e-4, weight_decay: 0.1}",
     "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: deepspeed_stage_2_offload}"},
    {optimizer, "FusedAdam", "{lr: 3e-4, weight_decay: 0.1}"},
    {optimizer, "Adagrad", "{lr: 0.01}"},
    {optimizer, "Adadelta", "{lr: 1.0, rho: 0.9}"},
    {optimizer, "Adamax", "{lr: 0.002}"},
    {optimizer, "NAdam", "{lr: 0.002}"},
    {optimizer, "RAdam", "{lr: 0.001}"},
    {optimizer, "RMSprop", "{lr: 0.01, momentum: 0.9}"},
    {optimizer, "Rprop", "{lr: 0.01}"},
    {optimizer, "ASGD", "{lr: 0.01}"},
    {optimizer, "Adafactor", "{lr: 0.01}", "", "state for rows and columns of matrices"},
    {optimizer, "Lion", "{lr: 1e-4, weight_decay: 0.1}", "", "of the package lion-pytorch"},
    {optimizer, "Lamb", "{lr: 0.001}", "", "of the package torch-optimizer"},
    {optimizer, "FusedLion", "{lr: 1e-4}", "", "DeepSpeed's Lion"},
    {optimizer, "DeepSpeedCPULion", "{lr: 1e-4}",
     "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: deepspeed_stage_2_offload}",
     "DeepSpeed's Lion in host memory"},
    {optimizer, "DeepSpeedCPUAdagrad", "{lr: 0.01}",
     "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: {DeepSpeedStrategy: "
     "{config: "
     "{zero_force_ds_cpu_optimizer: false, zero_optimization: {stage: 2, offload_optimizer: "
     "{device: cpu}}}}}}",
     "DeepSpeed's Adagrad in host memory"},
    {optimizer, "QAdamOptimizer", "{lr: 0.001, warmup_steps: 10}"},
    {optimizer, "ZeroRedundancyOptimizer", "{optimizer_class: Adam, lr: 0.001}"},

    {lr_scheduler, "StepLR", "{step_size: 1, gamma: 0.5}"},
    {lr_scheduler, "MultiStepLR", "{milestones: [1, 2]}"},
    {lr_scheduler, "ConstantLR", "{factor: 0.5, total_iters: 2}"},
    {lr_scheduler, "LinearLR", "{start_factor: 0.1, total_iters: 4}"},
    {lr_scheduler, "ExponentialLR", "{gamma: 0.9}"},
    {lr_scheduler, "PolynomialLR", "{total_iters: 4, power: 2.0}"},
    {lr_scheduler, "CosineAnnealingLR", "{T_max: 10}"},
    {lr_scheduler, "CosineAnnealingWarmRestarts", "{T_0: 2}"},
    {lr_scheduler, "OneCycleLR", "{max_lr: 0.1, total_steps: 8, interval: step}"},
    {lr_scheduler, "CyclicLR", "{base_lr: 0.01, max_lr: 0.1, step_size_up: 4, interval: step}"},
    {lr_scheduler, "LambdaLR", "{lr_lambda: 0.95 ** epoch}", "",
     "`epoch` counts the scheduler's own steps"},
    {lr_scheduler, "MultiplicativeLR", "{lr_lambda: 1 / (1 + epoch)}", "",
     "`epoch` counts the scheduler's own steps"},
    {lr_scheduler, "SequentialLR",
     "{schedulers: [{LinearLR: {total_iters: 2}}, {ExponentialLR: {gamma: 0.9}}], milestones: "
     "[2]}"},
    {lr_scheduler, "ChainedScheduler",
     "{schedulers: [{LinearLR: {total_iters: 2}}, {ExponentialLR: {gamma: 0.9}}]}"},
    {lr_scheduler, "get_constant_schedule_with_warmup", "{num_warmup_steps: 4, interval: step}", "",
     "a LambdaLR that Hugging Face's transformers makes"},
    {lr_scheduler, "get_linear_schedule_with_warmup",
     "{num_warmup_steps: 4, num_training_steps: 8, interval: step}", "",
     "a LambdaLR that Hugging Face's transformers makes"},
    {lr_scheduler, "get_cosine_schedule_with_warmup",
     "{num_warmup_steps: 4, num_training_steps: 8, interval: step}", "",
     "a LambdaLR that Hugging Face's transformers makes"},
    {lr_scheduler, "get_inverse_sqrt_schedule", "{num_warmup_steps: 4, interval: step}", "",
     "a LambdaLR that Hugging Face's transformers makes"},
    {lr_scheduler, "WarmupLR", "{warmup_max_lr: 0.01, warmup_num_steps: 10}", stepped_by_hook},
    {lr_scheduler, "WarmupDecayLR", "{total_num_steps: 100, warmup_num_steps: 10}",
     stepped_by_hook},
    {lr_scheduler, "WarmupCosineLR", "{total_num_steps: 100, warmup_num_steps: 10}",
     stepped_by_hook},
    {lr_scheduler, "OneCycle", "{cycle_min_lr: 0.001, cycle_max_lr: 0.01}", stepped_by_hook},
    {lr_scheduler, "LRRangeTest", "{lr_range_test_min_lr: 0.001}", stepped_by_hook},
    {lr_scheduler, "ReduceLROnPlateau", "{patience: 1, monitor: val_loss}"},

    {callback, "EarlyStopping", "{monitor: val_loss, patience: 2}"},
    {callback, "ModelCheckpoint", "{monitor: val_loss, save_top_k: 2}"},
    {callback, "LearningRateMonitor", "{logging_interval: step}",
     "lr_scheduler: {StepLR: {step_size: 1}}"},
    {callback, "ModelSummary"},
    {callback, "RichModelSummary"},
    {callback, "TQDMProgressBar"},
    {callback, "RichProgressBar"},
    {callback, "DeviceStatsMonitor"},

    {logger, "CSVLogger", "", "", "writes metrics.csv on rank 0; the default without TensorBoard"},
    {logger, "TensorBoardLogger", "", "", "writes event files on rank 0"},
    {logger, "WandbLogger", "", "", "sends to Weights & Biases from rank 0; nothing is sent here"},
    {logger, "MLFlowLogger", "", "", "sends to MLflow from rank 0; nothing is sent here"},
    {logger, "CometLogger", "", "", "sends to Comet from rank 0; nothing is sent here"},
    {logger, "NeptuneLogger", "", "", "sends to Neptune from rank 0; nothing is sent here"},

    {profiler, "simple", "", "", "SimpleProfiler by its short name; it changes no prediction"},
    {profiler, "advanced", "", "", "AdvancedProfiler by its short name; it changes no prediction"},
    {profiler, "pytorch", "", "", "PyTorchProfiler by its short name; its cost is not predicted"},
    {profiler, "SimpleProfiler", "", "", "durations of hooks; it changes no prediction"},
    {profiler, "AdvancedProfiler", "", "", "cProfile around hooks; its cost is not predicted"},
    {profiler, "PyTorchProfiler", "", "", "torch.profiler around hooks; its cost is not predicted"},
    {profiler, "PassThroughProfiler", "", "", "records nothing; the default"},

    {launcher, "lightning"},
    {launcher, "notebook", "",
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp_notebook, max_epochs: 1}"},
    {launcher, "torchrun", "{nproc_per_node: 2}"},
    {launcher, "horovodrun", "{np: 2, hosts: \"localhost:2\"}",
     "versions: {lightning: \"1.9\"}\n"
     "trainer: {accelerator: gpu, devices: 1, strategy: horovod, max_epochs: 1}"},
    {launcher, "baguarun", "{nproc_per_node: 2, host_list: \"localhost\"}"},
    {launcher, "bagua.distributed.launch", "{nproc_per_node: 2}"},
    {launcher, "srun", "{nodes: 1, ntasks_per_node: 2}"},
    {launcher, "mpirun", "{np: 2}"},

    {strategy, "auto"},
    {strategy, "single_device"},
    {strategy, "SingleDeviceStrategy"},
    {strategy, "dp"},
    {strategy, "DataParallelStrategy", "", up_to_1_9},
    {strategy, "ddp"},
    {strategy, "ddp_find_unused_parameters_true"},
    {strategy, "ddp_find_unused_parameters_false"},
    {strategy, "DDPStrategy", "{find_unused_parameters: true, bucket_cap_mb: 50}"},
    {strategy, "ddp2", "", up_to_1_6},
    {strategy, "DDP2Strategy", "", up_to_1_6},
    {strategy, "fsdp"},
    {strategy, "FSDPStrategy", "{auto_wrap_policy: [Linear], sharding_strategy: SHARD_GRAD_OP}"},
    {strategy, "fsdp_cpu_offload"},
    {strategy, "ModelParallelStrategy",
     "{data_parallel_size: 2, tensor_parallel_size: 1, fully_shard: {modules: [Linear]}}"},
    {strategy, "deepspeed"},
    {strategy, "deepspeed_stage_1"},
    {strategy, "deepspeed_stage_2"},
    {strategy, "deepspeed_stage_2_offload"},
    {strategy, "deepspeed_stage_3"},
    {strategy, "deepspeed_stage_3_offload"},
    {strategy, "deepspeed_stage_3_offload_nvme", "", "optimizer: {DeepSpeedCPUAdam: {lr: 0.001}}"},
    {strategy, "DeepSpeedStrategy", "{stage: 2, reduce_bucket_size: 50000}"},
    {strategy, "bagua", "", up_to_1_9},
    {strategy, "BaguaStrategy", "{algorithm: bytegrad, hierarchical: false}", up_to_1_9},
    {strategy, "xla", "", of_tpus},
    {strategy, "xla_debug", "", of_tpus},
    {strategy, "XLAStrategy", "{sync_module_states: false}", of_tpus},
    {strategy, "tpu_spawn_debug", "", of_tpus_up_to_1_9},
    {strategy, "TPUSpawnStrategy", "", of_tpus_up_to_1_9},
    {strategy, "single_xla", "", of_tpus},
    {strategy, "SingleDeviceXLAStrategy", "", of_tpus},
    {strategy, "single_tpu", "", of_tpus},
    {strategy, "SingleTPUStrategy", "", of_tpus},
    {strategy, "naive_model_parallel"},
    {strategy, "NaiveModelParallelStrategy", "{split: parameters}"},
    {strategy, "pipeline"},
    {strategy, "PipelineStrategy", "{schedule: GPipe, n_microbatches: 2, split: parameters}"},
    {strategy, "torchtitan"},
    {strategy, "TorchTitan", "{data_parallel_shard_degree: 2, mixed_precision_param: float32}"},
    {strategy, "MegatronStrategy",
     "{tensor_model_parallel_size: 2, micro_batch_size: 2, global_batch_size: 8}"},
    {strategy, "ddp_sharded", "", up_to_1_9},
    {strategy, "ddp_sharded_find_unused_parameters_false", "", validated_alone, raises_in_fit},
    {strategy, "ddp_sharded_spawn", "", torch_1},
    {strategy, "ddp_sharded_spawn_find_unused_parameters_false", "", validated_alone,
     raises_in_fit},
    {strategy, "DDPShardedStrategy", "{broadcast_buffers: false}", up_to_1_9},
    {strategy, "DDPSpawnShardedStrategy", "", torch_1},
    {strategy, "ddp_fully_sharded", "", up_to_1_9},
    {strategy, "DDPFullyShardedStrategy", "{bucket_cap_mb: 0, auto_wrap_policy: [Linear]}",
     up_to_1_9},
    {strategy, "fsdp_native_full_shard_offload", "", up_to_1_9},
    {strategy, "fsdp_native", "", up_to_1_9},
    {strategy, "DDPFullyShardedNativeStrategy",
     "{backward_prefetch: BACKWARD_PRE, activation_checkpointing: [Linear]}", up_to_1_9},
    {strategy, "horovod", "", up_to_1_9},
    {strategy, "HorovodStrategy", "{compression: fp16, fusion_threshold_mb: 64}", up_to_1_9},
    {strategy, "parameter_server"},
    {strategy, "ParameterServerStrategy", "{mode: batched, batch: 1, drop_late: true}"},
    {strategy, "ddp_spawn"},
    {strategy, "ddp_spawn_find_unused_parameters_true"},
    {strategy, "ddp_spawn_find_unused_parameters_false"},
    {strategy, "DDPSpawnStrategy", "", up_to_1_9},
    {strategy, "ddp_fork"},
    {strategy, "ddp_fork_find_unused_parameters_true"},
    {strategy, "ddp_fork_find_unused_parameters_false"},
    {strategy, "ddp_notebook"},
    {strategy, "ddp_notebook_find_unused_parameters_true"},
    {strategy, "ddp_notebook_find_unused_parameters_false"},
};

constexpr AddedArgument arguments[] = {
    {optimizer, "name", "", "how optimizer_step, zero_grad and toggle_model call it",
     "optimizer: {SGD: {lr: 0.1, name: body}}\n"
     "program:\n"
     "  automatic_optimization: false\n"
     "  training_step: [forward, {zero_grad: body}, {backward: loss}, {optimizer_step: body}]"},
    {optimizer, "module", "the whole model", "which of `model.modules` it steps",
     "model: {modules: {encoder: {input: [4], layers: [{Linear: [4, 2]}]}}}\n"
     "optimizer: {SGD: {lr: 0.1, module: encoder}}\n"
     "program: {training_step: [{forward: {module: encoder}}]}"},
    {optimizer, "set_to_none", "true from torch 2.0 on",
     "zero_grad leaves no gradient, not one of zeros",
     "optimizer: {SGD: {lr: 0.1, momentum: 0.9, set_to_none: false}}"},
    {optimizer, "scaling", "none",
     "what the script does to `lr`: linear times devices x num_nodes, sqrt times its root",
     "optimizer: {SGD: {lr: 0.1, scaling: linear}}"},
    {optimizer, "base_lr", "lr", "the rate that was found, for LS309",
     "optimizer: {SGD: {lr: 0.1, base_lr: 0.1, scaling: linear}}"},
    {optimizer, "base_batch_size", "data.train.batch_size",
     "the samples of a step for which the rate was found, for LS309",
     "optimizer: {SGD: {lr: 0.1, base_batch_size: 16}}"},

    {lr_scheduler, "optimizer", "the first", "which optimizer's rate it sets, by `name`",
     "optimizer: {SGD: {lr: 0.1, name: body}}\n"
     "lr_scheduler: {StepLR: {step_size: 1, optimizer: body}}"},
    {lr_scheduler, "monitor", "", "the logged key whose value steps it",
     "data: {train: {samples: 64}, val: {samples: 32}}\n"
     "lr_scheduler: {ReduceLROnPlateau: {monitor: val_loss}}\n"
     "program:\n"
     "  validation_step: [forward, {log: {name: val_loss, value: loss, sync_dist: true}}]"},
    {lr_scheduler, "interval", "epoch", "epoch or step: when it is stepped",
     "lr_scheduler: {StepLR: {step_size: 2, interval: step}}"},
    {lr_scheduler, "frequency", "1", "how many of these between two steps",
     "lr_scheduler: {StepLR: {step_size: 2, interval: step, frequency: 2}}"},
    {lr_scheduler, "strict", "true", "false: a missing key is a warning, not an exception",
     "lr_scheduler: {ReduceLROnPlateau: {monitor: val_loss, strict: false}}"},

    {launcher, "nnodes", "1", "how many nodes, or \"least:most\"",
     "trainer: {accelerator: gpu, devices: 8, num_nodes: 2, strategy: ddp, max_epochs: 1}\n"
     "cluster: {preset: dgx-a100, nodes: 2}\n"
     "launcher: {torchrun: {nnodes: 2, nproc_per_node: 8}}"},
    {launcher, "nproc_per_node", "1", "processes of each node",
     "launcher: {torchrun: {nproc_per_node: 2}}"},
    {launcher, "max_restarts", "0", "how often all are started again after a failure",
     "launcher: {torchrun: {nproc_per_node: 2, max_restarts: 3}}"},
    {launcher, "standalone", "false", "one node, which meets at its own localhost",
     "launcher: {torchrun: {nproc_per_node: 2, standalone: true}}"},
    {launcher, "rdzv_backend", "", "how agents meet: c10d, etcd, etcd-v2 or static",
     "launcher: {torchrun: {nproc_per_node: 2, max_restarts: 3, rdzv_backend: c10d}}"},
    {launcher, "rdzv_endpoint", "", "where agents meet, HOST:PORT",
     "launcher: {torchrun: {nproc_per_node: 2, rdzv_backend: c10d, rdzv_endpoint: "
     "\"node0:29400\"}}"},
    {launcher, "np", "", "processes in all", "launcher: {mpirun: {np: 2}}"},
    {launcher, "hosts", "", "hosts and the slots of each: \"host1:4,host2:4\", or a list",
     "launcher: {mpirun: {np: 2, hosts: \"localhost:2\"}}"},
    {launcher, "hostfile", "", "a file with a line per host: host1 slots=4",
     "launcher: {mpirun: {np: 2, hosts: \"localhost:2\", hostfile: null}}"},
    {launcher, "host_list", "", "names of the hosts: \"host1,host2\"",
     "launcher: {baguarun: {nproc_per_node: 2, host_list: \"localhost\"}}"},
    {launcher, "ssh_port", "", "by which baguarun reaches the hosts; nothing is sent here",
     "launcher: {baguarun: {nproc_per_node: 2, host_list: \"localhost\", ssh_port: 22}}"},
    {launcher, "master_addr", "127.0.0.1", "the node of rank 0",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, master_addr: 127.0.0.1}}"},
    {launcher, "master_port", "29500", "where rank 0 listens",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, master_port: 29600}}"},
    {launcher, "bagua_service_port", "29501", "where Bagua's service listens",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, bagua_service_port: 29601}}"},
    {launcher, "node_rank", "0", "of the only node; with several nodes it is left out",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, node_rank: 0}}"},
    {launcher, "default_bucket_size", "10485760", "bytes of a bucket",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, default_bucket_size: 1048576}}"},
    {launcher, "autotune_level", "0", "0: no autotuning, which is not modelled",
     "launcher: {bagua.distributed.launch: {nproc_per_node: 2, autotune_level: 0}}"},
    {launcher, "nodes", "1", "nodes of the job",
     "launcher: {srun: {nodes: 1, ntasks_per_node: 2}}"},
    {launcher, "ntasks_per_node", "1", "processes of each node",
     "launcher: {srun: {nodes: 1, ntasks_per_node: 2}}"},

    {strategy, "join", "", "",
     "versions: {lightning: \"2.4\"}\n"
     "data: {train: {batches: 4 + (rank == 0), batch_size: 8}}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: {DDPStrategy: {join: true}}, "
     "max_epochs: 1}"},
    {strategy, "divide_by_initial_world_size", "", "",
     "versions: {lightning: \"2.4\"}\n"
     "data: {train: {batches: 4 + (rank == 0), batch_size: 8}}\n"
     "trainer:\n"
     "  accelerator: gpu\n"
     "  devices: 2\n"
     "  strategy: {DDPStrategy: {join: true, divide_by_initial_world_size: false}}\n"
     "  max_epochs: 1"},
    {strategy, "throw_on_early_termination", "", "",
     "versions: {lightning: \"2.4\"}\n"
     "data: {train: {batches: 4 + (rank == 0), batch_size: 8}}\n"
     "trainer:\n"
     "  accelerator: gpu\n"
     "  devices: 2\n"
     "  strategy: {DDPStrategy: {join: true, throw_on_early_termination: true}}\n"
     "  max_epochs: 1"},
};

}  // namespace

std::span<const ClassExample> class_examples() { return class_example_rows; }

std::span<const AddedArgument> added_arguments() { return arguments; }

}  // namespace lockstep::cli
