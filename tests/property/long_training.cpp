#include "tests/property/long_training.hpp"

#include <fmt/format.h>

#include <vector>

#include "tests/property/draws.hpp"

namespace lockstep::test {

namespace {

std::vector<std::string> programs() {
  return {
      "",
      "",
      "",
      "",
      "",
      "{training_step: [forward, {log: {name: loss, value: loss}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, sync_dist: true}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, on_epoch: true}}]}",
      "{training_step: [forward, {log: {name: one, value: 1.25, on_epoch: true}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, on_epoch: true}}], "
      "validation_step: [forward, {log: {name: val, value: loss, sync_dist: true}}]}",
      "{on_train_batch_end: [{if: rank == 0, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [barrier], on_train_epoch_end: [{host: 1 ms}]}",
      "{on_train_batch_end: [{if: batch_idx % 5 == 0, then: [barrier]}]}",
      "{on_train_batch_start: [{if: batch_idx % 6 == 4 and rank == 0, then: [{host: 20 us}]}]}",
      "{on_train_batch_end: [{if: batch_idx == 13 or batch_idx > 40, then: [barrier]}]}",
      "{training_step: [forward, {let: {shows: batch_idx % 4 == 0}}, "
      "{if: shows, then: [{log: {name: loss, value: loss, on_epoch: true}}]}]}",
      "{training_step: [forward, {if: batch_idx % 7 == 3, "
      "then: [{log: {name: one, value: 1.25, on_epoch: true}}]}]}",
      "{training_step: [forward, {if: global_step % 11 == 5, then: [{log: {name: loss, value: "
      "loss}}]}]}",
      "{on_train_batch_start: [{if: batch_idx % 3 == rank, then: [{host: 20 us}]}]}",
      "{training_step: [forward, {log: {name: batch, value: batch_idx}}]}",
      "{automatic_optimization: false, training_step: [forward, backward, "
      "{if: batch_idx % 3 == 2, then: [optimizer_step, zero_grad]}]}",
      "{on_train_batch_end: [{if: global_step % 9 == 0, then: [barrier]}], "
      "training_step: [forward, {if: global_step < 12, then: [{host: 10 us}]}]}",
      "{validation_step: [forward, {if: batch_idx % 3 == 1, then: [barrier]}]}",
      "{on_train_epoch_end: [{if: epoch == 3, then: [barrier]}]}",
      "{on_train_epoch_end: [{if: epoch % 2 == 0, then: [{host: 1 ms}]}]}",
      "{on_validation_epoch_end: [{if: global_step > 50, then: [barrier]}]}",
      "{__init__: [{let: {self.seen: 0}}], "
      "on_train_batch_end: [{let: {self.seen: self.seen + 1}}, "
      "{if: self.seen == 40, then: [barrier]}]}",
      "{on_train_batch_end: [{let: {x: rank + 1}}, {if: x == 1, then: [{host: 5 us}]}]}",
  };
}

std::vector<std::string> strategies(bool on_gpus) {
  std::vector<std::string> strategies = {"ddp", "ddp", "ddp_find_unused_parameters_true"};
  if (on_gpus) {
    for (const char* name :
         {"deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3", "fsdp",
          "{FSDPStrategy: {auto_wrap_policy: [Linear]}}",
          "{FSDPStrategy: {auto_wrap_policy: [Linear], state_dict_type: sharded}}"}) {
      strategies.push_back(name);
    }
  }
  return strategies;
}

// Some of them raise before the training has ended.
std::string schedulers() {
  const std::string steps = std::to_string(*rc::gen::inRange(2, 400));
  return one_of({"{StepLR: {step_size: 2, gamma: 0.5}}",
                 "{ExponentialLR: {gamma: 0.9, interval: step}}",
                 "{CosineAnnealingLR: {T_max: 7, interval: step, frequency: 3}}",
                 "{OneCycleLR: {max_lr: 0.5, total_steps: " + steps + ", interval: step}}",
                 "{OneCycleLR: {max_lr: 0.5, total_steps: 5}}",
                 "{LambdaLR: {lr_lambda: 1 / (" + steps + " - epoch), interval: step}}"});
}

// DeepSpeed's windows do: Lightning counts no step where they leave an epoch. Waiting for data
// hides in time whether a row of the logger is read.
void go_over_ends_of_epochs(LongTraining& training) {
  training.batches = 2 * *rc::gen::inRange<int64_t>(4, 12) + 1;
  training.epochs = 17;
  training.rest = 0;
  training.loader = ", sample_time: 40 us, num_workers: 2";
  training.validation = "";
  training.trainer =
      ", accumulate_grad_batches: 2, log_every_n_steps: 3, enable_checkpointing: false";
  training.program =
      "program: {training_step: [forward, {log: {name: loss, value: loss, on_epoch: true}}]}\n";
}

// Rows of the logger fall on other batches in each of several epochs, then on the same again.
void log_across_epochs(LongTraining& training) {
  training.batches = *rc::gen::inRange<int64_t>(20, 90);
  training.epochs = *rc::gen::inRange<int64_t>(6, 40);
  const int64_t every = *rc::gen::element<int64_t>(3, 4, 7, 9);
  training.trainer = fmt::format(", log_every_n_steps: {}{}", every,
                                 one_of({"", ", enable_checkpointing: false"}));
  training.program =
      "program: " +
      one_of({"{training_step: [forward, {log: {name: loss, value: loss}}]}",
              "{training_step: [forward, {log: {name: one, value: 1.25, on_epoch: true}}]}",
              "{training_step: [forward, {log: {name: loss, value: loss, sync_dist: true}}], "
              "validation_step: [forward, {log: {name: val, value: loss}}]}"}) +
      "\n";
}

// What decides at the ends of epochs whether there is another one.
void stop_early(LongTraining& training) {
  training.epochs = 17;
  training.validation = fmt::format(", val: {{samples: {}, batch_size: 1}}", 6 * training.ranks);
  training.trainer =
      ", log_every_n_steps: 3, callbacks: [{EarlyStopping: {monitor: one, patience: " +
      one_of({"3", "8", "40"}) + "}}" +
      one_of({"", ", {ModelCheckpoint: {monitor: one, save_top_k: 2}}"}) + "]" +
      one_of({"", ", min_epochs: 12", ", val_check_interval: 0.5, min_epochs: 9"});
  training.program =
      "program: {training_step: [forward, {log: {name: loss, value: loss}}], "
      "validation_step: [forward, {log: {name: one, value: 1.25}}]}\n";
}

// Strategies that do something else from some step on, or every few steps.
void count_steps(LongTraining& training) {
  training.ranks = *rc::gen::element(2, 4);
  const bool has_bagua = *rc::gen::element(true, false);
  const std::string begins = std::to_string(*rc::gen::inRange(2, 40));
  const int period_steps = *rc::gen::inRange(1, 7);
  const std::string period = std::to_string(period_steps);
  const std::string levels =
      training.ranks == 2 ? fmt::format("{}: 2", period_steps + 1)
                          : fmt::format("{}: 2, {}: 4", period_steps + 1, 2 * period_steps + 2);
  if (!has_bagua) {
    const std::string state = one_of(
        {"ddp_comm_hook: powerSGD_hook, ddp_comm_state: {matrix_approximation_rank: 1, "
         "start_powerSGD_iter: " +
             begins + "}",
         "ddp_comm_hook: post_localSGD_hook, ddp_comm_state: {start_localSGD_iter: " + begins +
             "}, model_averaging_period: " + period,
         "ddp_comm_hook: noop_hook, model_averaging_period: " + period +
             ", outer_optimizer: {lr: 0.7}",
         "ddp_comm_hook: noop_hook, model_averager: {HierarchicalModelAverager: "
         "{period_group_size_dict: {" +
             levels + "}}}"});
    training.strategy = "{DDPStrategy: {" + state + "}}";
    return;
  }
  training.more = "versions: {lightning: \"1.9\"}\n";
  const std::string algorithm =
      one_of({"qadam", "decentralized, hierarchical: false, communication_interval: " + period,
              "decentralized, hierarchical: false, peer_selection_mode: shift_one",
              "low_precision_decentralized, hierarchical: false, communication_interval: " + period,
              "async, warmup_steps: " + begins});
  training.strategy = "{BaguaStrategy: {algorithm: " + algorithm + "}}";
  if (algorithm == "qadam") {
    training.more += "optimizer: {QAdamOptimizer: {lr: 0.01, warmup_steps: " + begins + "}}\n";
  }
}

// Gradients are averaged by a thread of each rank, which goes on beside the steps.
void negotiate(LongTraining& training) {
  training.ranks = *rc::gen::element(2, 3, 4);
  training.more = "versions: {lightning: \"1.9\"}\n";
  const std::string arguments =
      one_of({"", "", "compression: fp16", "num_groups: 2", "backward_passes_per_step: 2",
              "op: sum", "gradient_predivide_factor: 2.0", "op: adasum",
              "process_sets: [[0, 1], [2, 3]]", "process_sets: [[1, 2]]", "cache_capacity: 0",
              "cache_capacity: 3"}) +
      one_of({"", "", ", fusion_threshold_mb: 0.0001", ", fusion_threshold_mb: 0.00002"}) +
      one_of({"", "", ", cycle_time_ms: 0.02", ", cycle_time_ms: 3.3"});
  training.ranks = arguments.find("process_sets") == std::string::npos ? training.ranks : 4;
  training.strategy =
      "{HorovodStrategy: {" + arguments.substr(arguments.starts_with(", ") ? 2 : 0) + "}}";
}

// Servers have no loop of their own, and do what those of the workers ask.
void serve(LongTraining& training) {
  training.ranks = *rc::gen::element(2, 3, 4);
  const int servers = training.ranks > 2 ? *rc::gen::element(1, 1, 2) : 1;
  const int workers = training.ranks - servers;
  const int most = *rc::gen::inRange(1, workers + 1);
  const int stale = *rc::gen::inRange(0, 4);
  const std::string mode =
      one_of({"sync", "async", "async", fmt::format("ssp, max_staleness: {}", stale),
              fmt::format("batched, batch: {}", most),
              fmt::format("batched, batch: {}, drop_late: true", most)});
  training.strategy = fmt::format("{{ParameterServerStrategy: {{mode: {}, servers: {}{}}}}}", mode,
                                  servers, one_of({"", "", ", join: false"}));
  training.more = one_of({"", "optimizer: {SGD: {lr: 0.01, momentum: 0.9}}\n"});
}

// Steps begin while messages of the step before are under way.
void go_through_stages(LongTraining& training) {
  training.layers =
      "{Linear: [6, 6]}, GELU, {Linear: [6, 6]}, GELU, {Linear: [6, 6]}, GELU, "
      "{Linear: [6, 6]}";
  training.ranks = *rc::gen::element(2, 4);
  training.batch = 4;
  training.rest = 0;
  training.loader +=
      training.loader.find("drop_last") == std::string::npos ? ", drop_last: true" : "";
  training.strategy =
      one_of({"{PipelineStrategy: {schedule: GPipe, n_microbatches: 2, pipeline_parallel_size: 2}}",
              "{PipelineStrategy: {schedule: 1F1B, n_microbatches: 4, pipeline_parallel_size: 2}}",
              "{PipelineStrategy: {schedule: Interleaved1F1B, n_microbatches: 4, stages: 4, "
              "pipeline_parallel_size: 2}}",
              "{MegatronStrategy: {pipeline_model_parallel_size: 2, micro_batch_size: 1, "
              "global_batch_size: " +
                  std::to_string(2 * training.ranks) + "}}",
              "{MegatronStrategy: {pipeline_model_parallel_size: 2, micro_batch_size: 2, "
              "global_batch_size: " +
                  std::to_string(2 * training.ranks) +
                  ", ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}}}"});
}

// Before the training has gone far, within it or behind its end.
std::string instant() {
  switch (*rc::gen::inRange(0, 3)) {
    case 0: return fmt::format("step {}", *rc::gen::inRange(0, 500));
    case 1: return fmt::format("epoch {}", *rc::gen::inRange(0, 8));
    default:
      return fmt::format("{} us",
                         *rc::gen::inRange(1, 40) * *rc::gen::element(10, 100, 1000, 10000));
  }
}

std::string fault(const LongTraining& training, bool on_gpus) {
  const std::string rank =
      fmt::format("rank: {}, at: {}", *rc::gen::inRange(0, training.ranks), instant());
  const std::string lasts =
      *rc::gen::element(true, false)
          ? fmt::format(", for: {} us", *rc::gen::inRange(1, 200) * *rc::gen::element(1, 30, 400))
          : "";
  const std::string call = fmt::format(", call: {}", *rc::gen::element(1, 2, 9, 200));
  std::vector<std::string> faults = {
      "{straggler: {slowdown: 3.0, " + rank + lasts + "}}",
      "{straggler: {slowdown: 40.0, " + rank + lasts + "}}",
      "{slow_data: {slowdown: 5.0, " + rank + lasts + "}}",
      "{exception: {" + rank + "}}",
      "{out_of_memory: {hook: on_train_epoch_end, " + rank + "}}",
      "{lost_rank: {" + rank + "}}",
      "{lost_rank: {" + rank + call + "}}",
      "{lost_message: {" + rank + call + "}}",
      "{signal: {name: SIGTERM, " + rank + "}}",
  };
  if (on_gpus && training.ranks > 1) {
    const std::string slow = one_of({"bandwidth: 10 %", "latency: 3 us", "bandwidth: 1 %"});
    const std::string between = "{slow_link: {between: [gpu 0, gpu 1], " + slow;
    faults.push_back(between + ", at: " + instant() + lasts + "}}");
    faults.push_back(between + ", at: " + instant() + lasts + "}}");
  }
  return one_of(faults);
}

// Batches are counted, or some ranks have fewer: the others wait for them in the end.
void perhaps_divide_otherwise(LongTraining& training) {
  if (training.counts_batches || *rc::gen::element(true, true, true, false)) {
    return;
  }
  training.counts_batches = *rc::gen::element(true, false);
  if (training.counts_batches) {
    training.own_batches = one_of({"", " - (rank == 1)", " + 3 * rank", " - 5 * (rank == 0)"});
  } else {
    training.own_size = one_of({"1 + rank % 2", "2 - rank % 2", "1 + rank"});
    training.loader += one_of({"", ", sampler: unrepeated"});
  }
}

// Ranks without data mirror what the others do, or each validates by itself as long as it has data.
// Lightning 2.5 asks for signals before each batch, which nobody mirrors.
void have_unequal_batches(LongTraining& training) {
  training.strategy =
      one_of({"{DDPStrategy: {join: true}}",
              "{DDPStrategy: {join: true, divide_by_initial_world_size: false}}", "ddp"});
  training.more = "versions: {lightning: \"2.4\"}\n";
  training.counts_batches = true;
  training.own_batches = one_of({" - (rank == 1)", " + 2 * rank", " - 6 * (rank == 0)", ""});
  training.validation =
      one_of({"", fmt::format(", val: {{batches: 7 + rank, batch_size: {}}}", training.batch)});
}

std::string checkpoints() {
  return one_of({"", "", ", enable_checkpointing: false",
                 ", callbacks: [{ModelCheckpoint: {every_n_train_steps: 5}}]",
                 ", callbacks: [LearningRateMonitor]",
                 ", callbacks: [{LearningRateMonitor: {logging_interval: step, log_momentum: "
                 "true}}, {ModelCheckpoint: {every_n_train_steps: 5}}]",
                 ", callbacks: [{ModelCheckpoint: {every_n_train_steps: 4, "
                 "save_top_k: -1, save_last: true}}]",
                 ", callbacks: [{ModelCheckpoint: {every_n_train_steps: 3, "
                 "filename: \"{step}\"}}, {ModelCheckpoint: "
                 "{every_n_train_steps: 7, dirpath: other}}]",
                 ", callbacks: [{ModelCheckpoint: {every_n_epochs: 2}}]"});
}

std::string section_of(const std::string& program) {
  return program.empty() ? "" : "program: " + program + "\n";
}

// Kernels beside communication are slower then.
void perhaps_price_kernels(LongTraining& training, bool on_gpus) {
  if (on_gpus && training.more.find("versions:") == std::string::npos &&
      *rc::gen::element(true, false, false)) {
    training.more += "versions: {kernels: pytorch}\n";
  }
}

void meet_faults(LongTraining& training, bool on_gpus) {
  const std::string one = fault(training, on_gpus);
  const std::string other = *rc::gen::element(true, false) ? ", " + fault(training, on_gpus) : "";
  training.more += "faults: [" + one + other + "]\n";
}

}  // namespace

std::string LongTraining::text(bool all_steps) const {
  const int64_t samples = (batches * batch - rest) * ranks;
  return fmt::format(
      "version: 1\n"
      "cluster: {}\n"
      "model: {{input: [6], layers: [{}], loss: MSELoss}}\n"
      "data: {{train: {{{}, batch_size: {}{}}}{}}}\n"
      "trainer: {{accelerator: {}, devices: {}, strategy: {}, max_epochs: {}{}}}\n"
      "{}{}"
      "verify: {{numerics: false, all_steps: {}}}\n",
      cluster, layers,
      counts_batches ? fmt::format("batches: {}{}", batches, own_batches)
                     : fmt::format("samples: {}", samples),
      own_size.empty() ? std::to_string(batch) : own_size, loader, validation, accelerator, ranks,
      strategy, epochs, trainer, program, more, all_steps);
}

std::ostream& operator<<(std::ostream& out, const LongTraining& training) {
  return out << training.text(false);
}

rc::Gen<LongTraining> long_trainings() {
  return rc::gen::exec([] {
    LongTraining training;
    training.ranks = *rc::gen::element(1, 2, 2, 3, 4);
    const bool on_gpus = *rc::gen::element(true, true, false);
    const std::string disk = one_of({"", "", "", ", disk: 1 MB/s"});
    training.cluster = (on_gpus ? "{preset: dgx-a100, nodes: 1" : "{preset: cpu") + disk + "}";
    training.accelerator = on_gpus ? "gpu" : "cpu";
    training.strategy = training.ranks == 1 ? "auto" : one_of(strategies(on_gpus));
    training.batches = *rc::gen::inRange<int64_t>(8, 120);
    training.batch = *rc::gen::inRange<int64_t>(1, 4);
    training.rest = *rc::gen::element<int64_t>(0, 0, training.batch - 1);
    training.epochs = *rc::gen::element(*rc::gen::inRange<int64_t>(1, 9), int64_t{17});
    if (*rc::gen::element(true, true, false)) {
      training.trainer += ", accumulate_grad_batches: " + one_of({"2", "3", "4"});
    }
    training.trainer += one_of({"", "", ", log_every_n_steps: 3", ", log_every_n_steps: 7"}) +
                        one_of({"", "", "", ", max_steps: 137", ", max_steps: 37"});
    training.trainer += checkpoints();
    training.loader =
        one_of({"", "", ", sample_time: 5 us", ", sample_time: 40 us, num_workers: 2",
                ", sample_time: 2 us, num_workers: 3, prefetch_factor: 1", ", drop_last: true"});
    if (*rc::gen::element(true, false)) {
      training.validation =
          fmt::format(", val: {{samples: {}, batch_size: {}{}}}",
                      *rc::gen::inRange<int64_t>(1, 30) * training.ranks, training.batch,
                      one_of({"", ", sample_time: 3 us, num_workers: 2"}));
      training.trainer += one_of({"", "", ", check_val_every_n_epoch: 2", ", val_check_interval: 4",
                                  ", val_check_interval: 0.5"});
    }
    if (*rc::gen::element(true, false, false, false, false)) {
      negotiate(training);
    } else if (*rc::gen::element(true, false, false, false, false)) {
      serve(training);
    } else if (training.ranks > 1 && *rc::gen::element(true, false, false, false)) {
      have_unequal_batches(training);
    } else if (on_gpus && *rc::gen::element(true, false)) {
      go_through_stages(training);
    } else if (on_gpus && *rc::gen::element(true, true, false)) {
      count_steps(training);
    }
    perhaps_divide_otherwise(training);
    if (*rc::gen::element(true, false, false) && training.more.empty()) {
      training.more = "lr_scheduler: " + schedulers() + "\n";
    }
    training.program = section_of(one_of(programs()));
    if (training.strategy.starts_with("deepspeed") && *rc::gen::element(true, false)) {
      go_over_ends_of_epochs(training);
    } else if (*rc::gen::element(true, false, false, false)) {
      log_across_epochs(training);
    } else if (*rc::gen::element(true, false, false, false, false)) {
      stop_early(training);
    }
    if (*rc::gen::element(true, false, false)) {
      meet_faults(training, on_gpus);
    }
    perhaps_price_kernels(training, on_gpus);
    return training;
  });
}

}  // namespace lockstep::test
