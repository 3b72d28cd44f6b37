#include "explain/key_example_table.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view with_validation =
    "data: {train: {samples: 64, batch_size: 8}, val: {samples: 32, batch_size: 8}}";
constexpr std::string_view old_lightning = "versions: {lightning: \"1.6\"}";
constexpr std::string_view on_two_nodes =
    "trainer: {accelerator: gpu, devices: 8, num_nodes: 2, max_epochs: 1}";
constexpr std::string_view transformer =
    "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1, precision: bf16-mixed}";

constexpr KeyExample key_example_rows[] = {
    {"scenario", "version", "1"},
    {"scenario", "include", "[base.yaml]"},
    {"scenario", "versions", "{lightning: \"1.9\", torch: \"1.13\"}"},
    {"scenario", "seed_everything", "7"},
    {"scenario", "env", "{NCCL_DEBUG: INFO}"},
    {"scenario", "launcher", "{torchrun: {nproc_per_node: 2}}"},
    {"scenario", "cluster", "{preset: dgx-h100, nodes: 1}"},
    {"scenario", "process_group", "{timeout: 1 min}"},
    {"scenario", "model", "{preset: resnet18}"},
    {"scenario", "data", "{train: {samples: 128, batch_size: 16}}"},
    {"scenario", "optimizer", "{AdamW: {lr: 3e-4, weight_decay: 0.1}}"},
    {"scenario", "lr_scheduler", "{CosineAnnealingLR: {T_max: 10}}"},
    {"scenario", "trainer", "{accelerator: gpu, devices: 4, strategy: ddp, max_steps: 2}"},
    {"scenario", "metrics", "{val_f1: BinaryF1Score}",
     "program:\n  validation_step:\n    - update: val_f1\n    - log: {name: val_f1, value: "
     "val_f1}"},
    {"scenario", "program", "{training_step: [forward, {log: {name: loss, value: loss}}]}"},
    {"scenario", "faults", "[{straggler: {rank: 1, slowdown: 2}}]"},
    {"scenario", "verify", "{world_sizes: [2, 4]}"},
    {"scenario", "expect", "[no_findings, step_time < 1 s]"},
    {"scenario", "cases", "",
     "cases:\n  two: {expect: [world_size == 2]}\n"
     "  four: {trainer: {devices: 4}, expect: [world_size == 4]}"},

    {"case", "base", "",
     "cases:\n  two: {expect: [world_size == 2]}\n"
     "  longer: {base: two, trainer: {max_epochs: 2}}"},

    {"cluster", "preset", "dgx-a100"},
    {"cluster", "nodes", "2", on_two_nodes},
    {"cluster", "gpu", "v100-sxm2-16gb"},
    {"cluster", "gpus", "4"},
    {"cluster", "occupied", "[0]",
     "versions: {lightning: \"1.9\"}\n"
     "trainer: {accelerator: gpu, devices: 2, auto_select_gpus: true, max_epochs: 1}"},
    {"cluster", "nvlink", "100 GB/s"},
    {"cluster", "pcie", "16 GB/s"},
    {"cluster", "nics", "4"},
    {"cluster", "nvme", "{size: 15 TB, read: 25 GB/s, write: 15 GB/s}"},
    {"cluster", "network", "{bandwidth: 12.5 GB/s}", on_two_nodes},
    {"cluster", "cpu_cores", "32"},
    {"cluster", "memory", "256 GiB"},
    {"cluster", "disk", "2 GB/s"},
    {"cluster", "mtbf", "30 d",
     "launcher: {torchrun: {nproc_per_node: 8, max_restarts: 3}}\n"
     "trainer: {accelerator: gpu, devices: 8, max_epochs: 1}"},
    {"cluster", "price", "{amount: 2.5, currency: USD, per: gpu_hour}"},
    {"cluster", "start_time", "90 s",
     "launcher: {torchrun: {nproc_per_node: 8, max_restarts: 3}}\n"
     "trainer: {accelerator: gpu, devices: 8, max_epochs: 1}"},
    {"cluster", "ranks", "",
     "cluster: {ranks: 4, network: {bandwidth: 25 GB/s}}\n"
     "program:\n  main:\n    - all_reduce: {elements: 1000000}"},
    {"cluster", "collectives", "",
     "cluster: {ranks: 4, network: {bandwidth: 25 GB/s, latency: 2 us}, collectives: tree}\n"
     "program:\n  main:\n    - all_reduce: {elements: 1000000}"},
    {"cluster", "nccl_xml", "topology.xml"},
    {"cluster", "nvidia_smi", "topo.txt"},
    {"cluster", "calibration", "machine.json"},
    {"cluster.gpu", "preset", "v100-sxm2-16gb"},
    {"cluster.gpu", "memory", "16 GiB"},
    {"cluster.gpu", "memory_bandwidth", "900 GB/s"},
    {"cluster.gpu", "flops", "{achieved: 10 TFLOP/s}"},
    {"cluster.network", "bandwidth", "12.5 GB/s"},
    {"cluster.network", "latency", "5 us"},
    {"cluster.network", "oversubscription", "4"},
    {"cluster.network", "fabric", "efa"},
    {"cluster.nvme", "size", "30 TB"},
    {"cluster.nvme", "read", "25 GB/s"},
    {"cluster.nvme", "write", "12 GB/s"},
    {"cluster.nvme", "latency", "80 us"},
    {"cluster.price", "amount", "2.5"},
    {"cluster.price", "currency", "EUR"},
    {"cluster.price", "per", "gpu_hour"},

    {"process_group", "backend", "gloo",
     "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}"},
    {"process_group", "timeout", "1 min"},
    {"process_group", "eager_limit", "4 KiB"},

    {"model", "preset", "gpt2", transformer},
    {"model", "hf", "config.json"},
    {"model", "layers", "",
     "model: {input: [4], layers: [{Linear: [4, 8]}, ReLU, {Linear: [8, 2]}]}"},
    {"model", "modules", "",
     "model: {modules: {encoder: {input: [4], layers: [{Linear: [4, 2]}]}}}\n"
     "optimizer: {SGD: {lr: 0.1, module: encoder}}\n"
     "program: {training_step: [{forward: {module: encoder}}]}"},
    {"model", "input", "", "model: {input: [3, 8, 8], layers: [Flatten, {Linear: [192, 2]}]}"},
    {"model", "input_dtype", "",
     "model: {input: [4], input_dtype: fp32, layers: [{Linear: [4, 2]}]}"},
    {"model", "loss", "", "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}"},
    {"model", "loss_in", "",
     "versions: {lightning: \"1.6\"}\nmodel: {input: [4], layers: [{Linear: [4, 2]}], loss: "
     "MSELoss, loss_in: training_step_end}\ntrainer: {accelerator: gpu, devices: 2, strategy: dp, "
     "max_epochs: 1}"},
    {"model", "activation_checkpointing", "",
     "model: {preset: gpt2, activation_checkpointing: full}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "compile", "true"},
    {"model", "attention", "",
     "model: {preset: gpt2, attention: math}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "memory_format", "",
     "versions: {kernels: pytorch}\nmodel: {preset: resnet50, memory_format: channels_last}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, precision: 16-mixed, max_steps: 1}"},
    {"model", "initial", "",
     "model: {input: [4], layers: [{Linear: [4, 2]}], initial: {0.weight: 0.5, 0.bias: [1, -1]}}"},
    {"model", "unpicklable", "[model]",
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp_spawn, max_epochs: 1}"},
    {"model", "seq_len", "",
     "model: {preset: gpt2, seq_len: 512}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "target_len", "",
     "model: {preset: t5-small, seq_len: 64, target_len: 16}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "stochastic_depth", "",
     "model: {preset: efficientnet-b0, stochastic_depth: 0.2}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "vocab_size", "",
     "model: {preset: gpt2, vocab_size: 32000}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "dropout", "",
     "model: {preset: gpt2, dropout: 0.2}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"model", "image_size", "", "model: {preset: resnet18, image_size: 128}"},
    {"model", "num_classes", "10"},
    {"model", "in_features", "64"},
    {"model", "hidden_size", "128"},
    {"layer", "name", "head"},
    {"layer", "checkpoint", "torch"},
    {"layer", "initial", "",
     "model: {input: [2], layers: [{Linear: [2, 2], initial: {weight: [[1, 0], [0, 1]], bias: "
     "0}}]}"},
    {"layer", "trainable", "",
     "model: {input: [4], layers: [{Linear: {in_features: 4, out_features: 8, trainable: false}}, "
     "{Linear: [8, 2]}]}"},
    {"layer", "frozen_on", "",
     "model: {input: [4], layers: [{Linear: {in_features: 4, out_features: 8, frozen_on: [1]}}, "
     "{Linear: [8, 2]}]}"},
    {"layer", "device", "0"},
    {"Cost", "parameters", "5000000"},
    {"Cost", "forward", "2 ms"},
    {"Cost", "backward", "4 ms"},
    {"Cost", "activation", "8 MiB"},

    {"data", "samples", "128"},
    {"data", "tokens", "",
     "model: {preset: gpt2}\ndata: {train: {tokens: 65536, batch_size: 8}}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1}"},
    {"data", "batches", "", "data: {train: {batches: 4 + (rank == 0), batch_size: 8}}"},
    {"data", "batch_size", "16"},
    {"data", "shuffle", "false"},
    {"data", "drop_last", "true"},
    {"data", "pin_memory", "true"},
    {"data", "persistent_workers", "",
     "data: {train: {samples: 64, batch_size: 8, num_workers: 2, persistent_workers: true}}"},
    {"data", "num_workers", "2"},
    {"data", "prefetch_factor", "",
     "data: {train: {samples: 64, batch_size: 8, num_workers: 2, prefetch_factor: 4}}"},
    {"data", "iterable", "true"},
    {"data", "sampler", "distributed"},
    {"data", "sampler_drop_last", "",
     "data: {val: {samples: 10, batch_size: 2, sampler: distributed, sampler_drop_last: true}}\n"
     "program: {validation_step: [{log: {name: mean_score, value: mean(score), sync_dist: "
     "true}}]}"},
    {"data", "set_epoch", "",
     "data: {train: {samples: 64, batch_size: 8, sampler: distributed, set_epoch: false}}\n"
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2, "
     "use_distributed_sampler: false}"},
    {"data", "sample_time", "1 ms"},
    {"data", "sample_size", "600 KiB"},
    {"data", "inputs", "",
     "model: {layers: [{Linear: [2, 1]}], loss: MSELoss}\n"
     "data: {train: {inputs: [[1, 0], [0, 1], [1, 1], [2, -1]], batch_size: 2}}"},
    {"data", "targets", "",
     "model: {layers: [{Linear: [2, 3]}], loss: CrossEntropyLoss}\n"
     "data: {train: {targets: [0, 2, 1, 0], batch_size: 2}}"},
    {"data", "values", "",
     "data: {val: {samples: 32, values: {score: random(), target: sample % 2}}}\n"
     "program: {validation_step: [{log: {name: mean_score, value: mean(score), sync_dist: "
     "true}}]}"},
    {"data", "train", "{samples: 128, batch_size: 16}"},
    {"data", "val", "{samples: 32, batch_size: 16}"},
    {"data", "test", "{samples: 32, batch_size: 16}", "program: {main: [fit, test]}"},
    {"data", "predict", "{samples: 32, batch_size: 16}", "program: {main: [predict]}"},

    {"trainer", "accelerator", "cpu"},
    {"trainer", "strategy", "{DDPStrategy: {find_unused_parameters: true}}"},
    {"trainer", "devices", "4"},
    {"trainer", "gpus", "",
     "versions: {lightning: \"1.6\"}\ntrainer: {gpus: 2, strategy: ddp, max_epochs: 1}"},
    {"trainer", "num_nodes", "2", "cluster: {preset: dgx-a100, nodes: 2}"},
    {"trainer", "num_processes", "",
     "versions: {lightning: \"1.6\"}\n"
     "trainer: {accelerator: cpu, num_processes: 2, strategy: ddp, max_epochs: 1}"},
    {"trainer", "precision", "bf16-mixed"},
    {"trainer", "accumulate_grad_batches", "2"},
    {"trainer", "gradient_clip_val", "1.0"},
    {"trainer", "gradient_clip_algorithm", "",
     "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, gradient_clip_val: "
     "0.5, "
     "gradient_clip_algorithm: value}"},
    {"trainer", "use_distributed_sampler", "false"},
    {"trainer", "replace_sampler_ddp", "false", old_lightning},
    {"trainer", "sync_batchnorm", "true"},
    {"trainer", "auto_select_gpus", "true", old_lightning},
    {"trainer", "deterministic", "true"},
    {"trainer", "benchmark", "true"},
    {"trainer", "inference_mode", "false"},
    {"trainer", "detect_anomaly", "false"},
    {"trainer", "barebones", "false"},
    {"trainer", "amp_backend", "native", old_lightning},
    {"trainer", "amp_level", "",
     "versions: {lightning: \"1.6\"}\n"
     "trainer: {gpus: 2, strategy: ddp, precision: 16, amp_backend: apex, amp_level: O1, "
     "max_epochs: 1}"},
    {"trainer", "max_epochs", "3"},
    {"trainer", "min_epochs", "1"},
    {"trainer", "max_steps", "3"},
    {"trainer", "min_steps", "1"},
    {"trainer", "max_time", "\"00:12:00:00\""},
    {"trainer", "limit_train_batches", "0.5"},
    {"trainer", "limit_val_batches", "2", with_validation},
    {"trainer", "limit_test_batches", "2",
     "data: {test: {samples: 64, batch_size: 8}}\nprogram: {main: [test]}"},
    {"trainer", "limit_predict_batches", "2",
     "data: {predict: {samples: 64, batch_size: 8}}\nprogram: {main: [predict]}"},
    {"trainer", "overfit_batches", "4"},
    {"trainer", "fast_dev_run", "true"},
    {"trainer", "val_check_interval", "0.5", with_validation},
    {"trainer", "check_val_every_n_epoch", "2", with_validation},
    {"trainer", "num_sanity_val_steps", "0", with_validation},
    {"trainer", "log_every_n_steps", "1"},
    {"trainer", "reload_dataloaders_every_n_epochs", "1"},
    {"trainer", "callbacks", "[LearningRateMonitor]"},
    {"trainer", "plugins", "[]"},
    {"trainer", "logger", "false"},
    {"trainer", "profiler", "simple"},
    {"trainer", "enable_checkpointing", "false"},
    {"trainer", "enable_progress_bar", "false"},
    {"trainer", "enable_model_summary", "false"},
    {"trainer", "default_root_dir", "runs"},
    {"trainer", "auto_lr_find", "false"},
    {"trainer", "auto_scale_batch_size", "false"},
    {"trainer", "checkpoint_callback", "true"},
    {"trainer", "distributed_backend", "",
     "versions: {lightning: \"1.4\"}\ntrainer: {accelerator: ddp, gpus: 2, max_epochs: 1, "
     "distributed_backend: null}"},
    {"trainer", "enable_autolog_hparams", "false"},
    {"trainer", "flush_logs_every_n_steps", "200"},
    {"trainer", "hpus", "null"},
    {"trainer", "ipus", "null"},
    {"trainer", "log_gpu_memory", "min_max"},
    {"trainer", "model_registry", "null"},
    {"trainer", "move_metrics_to_cpu", "false"},
    {"trainer", "multiple_trainloader_mode", "max_size_cycle"},
    {"trainer", "prepare_data_per_node", "true"},
    {"trainer", "process_position", "1"},
    {"trainer", "progress_bar_refresh_rate", "10"},
    {"trainer", "reload_dataloaders_every_epoch", "false"},
    {"trainer", "resume_from_checkpoint", "null"},
    {"trainer", "stochastic_weight_avg", "false"},
    {"trainer", "terminate_on_nan", "false"},
    {"trainer", "tpu_cores", "null"},
    {"trainer", "track_grad_norm", "-1"},
    {"trainer", "truncated_bptt_steps", "",
     "versions: {lightning: \"1.4\"}\ntrainer: {accelerator: ddp, gpus: 2, max_epochs: 1, "
     "truncated_bptt_steps: null}"},
    {"trainer", "weights_save_path", "checkpoints"},
    {"trainer", "weights_summary", "full"},

    {"program", "functions", "",
     "program:\n  functions:\n    share: [{all_reduce: {elements: 1000}}]\n"
     "  training_step: [forward, {call: share}]"},
    {"program", "automatic_optimization", "",
     "program:\n  automatic_optimization: false\n"
     "  training_step: [forward, {backward: loss}, optimizer_step, zero_grad]"},
    {"verify", "world_sizes", "[2, 4]"},
    {"verify", "max_schedules", "100"},
    {"verify", "all_steps", "true"},
    {"verify", "all_ranks", "true"},
    {"verify", "numerics", "true"},
    {"verify", "single_device", "false"},
    {"verify", "ignore", "{LS304: padding is meant}"},
};

constexpr FaultExample faults[] = {
    {"straggler", "{rank: 1, slowdown: 2, at: step 1}", true},
    {"slow_data", "{rank: 1, slowdown: 4, at: step 1}", true,
     "data: {train: {samples: 64, batch_size: 8, sample_time: 1 ms}}"},
    {"slow_link", "{between: [gpu 0, gpu 1], bandwidth: 10 %, latency: 10 us, at: 0 s}", true},
    {"lost_rank", "{rank: 1, call: 3, at: step 1}"},
    {"lost_node", "{node: 0, at: step 1}"},
    {"lost_message", "{rank: 1, call: 2, at: step 1}"},
    {"corrupted_value", "{rank: 1, call: 1, at: step 1}"},
    {"exception", "{rank: 1, hook: training_step, at: step 1}"},
    {"out_of_memory", "{rank: 1, hook: training_step, at: step 1}"},
    {"signal", "{rank: 1, name: SIGTERM, hook: training_step, at: step 1}", false,
     "launcher: {torchrun: {nproc_per_node: 2}}"},
};

constexpr std::string_view not_modelled[] = {"model.compile", "data.sample_size",
                                             "trainer.amp_level", "trainer.max_time"};

}  // namespace

std::span<const std::string_view> keys_not_modelled() { return not_modelled; }

std::span<const KeyExample> key_examples() { return key_example_rows; }

std::span<const FaultExample> fault_examples() { return faults; }

}  // namespace lockstep::cli
