#include "tests/property/wide_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "tests/property/draws.hpp"
#include "tests/property/wide_faults.hpp"
#include "tests/property/wide_megatron.hpp"

namespace lockstep::test {

namespace {

// Some of them hang, or name ranks in ways by which no two are alike.
std::vector<std::string> hooks() {
  return {
      "",
      "",
      "{training_step: [forward, {log: {name: loss, value: loss}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, sync_dist: true}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, on_epoch: true, sync_dist: "
      "true}}]}",
      "{on_train_batch_end: [{if: rank == 0, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [{if: is_global_zero, then: [{kernel: 20 us}], else: [{kernel: 5 "
      "us}]}]}",
      "{on_train_batch_end: [{if: local_rank == 1, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [{if: node_rank == 2, then: [{host: 9 us}]}]}",
      "{on_train_batch_end: [{if: rank % 2 == 0, then: [{kernel: 7 us}]}]}",
      "{on_train_batch_end: [{if: rank == 3, then: [{kernel: 40 us}]}]}",
      "{on_train_batch_end: [{let: {x: rank + 1}}, {if: x == 1, then: [{host: 5 us}]}]}",
      "{on_train_batch_end: [{if: batch_idx % 3 == 0, then: [barrier]}]}",
      "{on_train_batch_end: [{if: batch_idx % 3 == 0 and rank == 0, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [{if: rank != 2 or epoch == 0, then: [{kernel: 30 us}]}]}",
      "{on_train_batch_end: [{if: batch_idx == 2 and rank == 1, then: [barrier]}]}",
      "{on_train_batch_end: [{if: rank == 0, then: [barrier]}]}",
      "{on_train_batch_end: [{if: rank > 1, then: [barrier]}]}",
      "{on_train_epoch_end: [barrier, {host: 1 ms}]}",
      "{validation_step: [forward, {log: {name: val, value: loss, sync_dist: true}}]}",
  };
}

/// A way to train, with the versions and the optimizer that it needs.
struct WayToTrain {
  std::string strategy;
  std::string lightning = "2.6";
  std::string optimizer = "Adam: {lr: 0.01}";
  bool by_horovodrun = false;
};

std::string wrapped() {
  return one_of({"", ", auto_wrap_policy: [Linear]", ", auto_wrap_policy: [Linear]"});
}

WayToTrain fsdp() {
  const std::string sharding =
      one_of({"FULL_SHARD", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD"});
  return {fmt::format(
      "{{FSDPStrategy: {{sharding_strategy: {}, use_orig_params: {}, cpu_offload: {}, "
      "state_dict_type: {}, sync_module_states: {}{}}}}}",
      sharding, one_of({"true", "true", "true", "false"}), one_of({"false", "false", "true"}),
      one_of({"full", "sharded"}), one_of({"false", "true"}),
      sharding == "HYBRID_SHARD" ? ", auto_wrap_policy: [Linear]" : wrapped())};
}

WayToTrain fsdp2(int ranks) {
  return {fmt::format(
      "{{ModelParallelStrategy: {{data_parallel_size: {}, tensor_parallel_size: 1, "
      "save_distributed_checkpoint: {}, fully_shard: {{modules: [Linear]{}}}}}}}",
      ranks, one_of({"false", "true"}),
      one_of({"", "", ", offload_policy: CPUOffloadPolicy", ", reshard_after_forward: false"}))};
}

WayToTrain deepspeed() {
  const std::string offload = one_of({"", "", ", offload_optimizer: {device: cpu}"});
  return {fmt::format(
      "{{DeepSpeedStrategy: {{config: {{zero_force_ds_cpu_optimizer: false, zero_optimization: "
      "{{stage: {}, reduce_bucket_size: {}, "
      "stage3_prefetch_bucket_size: {}, stage3_param_persistence_threshold: {}{}}}}}}}}}",
      one_of({"0", "1", "2", "3", "3", "3"}), one_of({"40", "200", "100000"}), one_of({"0", "90"}),
      one_of({"0", "12", "100000"}), offload)};
}

WayToTrain zero_redundancy() {
  return {one_of({"ddp", "ddp_find_unused_parameters_true"}), "2.6",
          fmt::format("ZeroRedundancyOptimizer: {{optimizer_class: Adam, lr: 0.01, "
                      "parameters_as_bucket_view: {}}}",
                      one_of({"false", "true"}))};
}

WayToTrain fairscale() {
  return {
      one_of({"ddp_sharded", "{DDPShardedStrategy: {reduce_buffer_size: 0}}", "ddp_fully_sharded",
              "{DDPFullyShardedStrategy: {auto_wrap_policy: [Linear], bucket_cap_mb: 0}}"}),
      "1.9"};
}

/// Nodes, and devices of each.
struct Devices {
  int nodes = 1;
  int of_node = 1;
  int all() const { return nodes * of_node; }
};

constexpr int micro_batches = 3;

// Ranks that compute layers together, on a node or on several, by a plan for the first layer and
// the last.
WayToTrain tensor_parallel(const Devices& devices) {
  const int tensor_ranks = devices.of_node * *rc::gen::element(1, 1, 1, 2);
  return {fmt::format(
      "{{ModelParallelStrategy: {{data_parallel_size: {}, tensor_parallel_size: {}, fully_shard: "
      "{{modules: [Linear]}}, parallelize_plan: {{\"0\": ColwiseParallel(), \"2\": "
      "RowwiseParallel()}}}}}}",
      devices.all() / tensor_ranks, tensor_ranks)};
}

WayToTrain pipeline() {
  return {
      fmt::format("{{PipelineStrategy: {{schedule: {}, n_microbatches: {}, "
                  "pipeline_parallel_size: {}, split: parameters{}}}}}",
                  one_of({"1F1B", "GPipe"}), micro_batches, *rc::gen::element(2, 2, 3),
                  one_of({"", ", fully_shard: {modules: [Linear]}",
                          ", fully_shard: {reshard_after_forward: false}",
                          ", fully_shard: {mp_policy: {param_dtype: bf16, reduce_dtype: fp32}}"}))};
}

WayToTrain hybrid(const Devices& devices) {
  const int shard_ranks = devices.of_node * *rc::gen::element(1, 1, 2);
  const int replicas = devices.all() / shard_ranks;
  switch (*rc::gen::element(0, 1, 2)) {
    case 0:
      return {
          fmt::format("{{FSDPStrategy: {{sharding_strategy: {}, device_mesh: [{}, {}], "
                      "sync_module_states: {}{}}}}}",
                      one_of({"HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}), replicas, shard_ranks,
                      one_of({"true", "false"}), wrapped())};
    case 1:
      return {
          fmt::format("{{ModelParallelStrategy: {{data_parallel_size: {}, "
                      "tensor_parallel_size: 1, fully_shard: {{modules: [Linear], "
                      "reshard_after_forward: {}}}}}}}",
                      devices.all(), std::max(2, shard_ranks))};
    default:
      return {
          fmt::format("{{DeepSpeedStrategy: {{config: {{zero_optimization: {{stage: 3, "
                      "stage3_param_persistence_threshold: 0, zero_hpz_partition_size: "
                      "{}}}}}}}}}",
                      shard_ranks)};
  }
}

WayToTrain bagua() {
  return {fmt::format("{{BaguaStrategy: {{algorithm: {}, hierarchical: {}, bucket_size_mb: {}}}}}",
                      one_of({"gradient_allreduce", "bytegrad", "decentralized"}),
                      one_of({"false", "true"}), one_of({"0.0001", "10"})),
          "1.9"};
}

WayToTrain averaging() {
  return {fmt::format(
      "{{DDPStrategy: {{ddp_comm_hook: {}, model_averaging_period: {}{}}}}}",
      one_of({"post_localSGD_hook, ddp_comm_state: {start_localSGD_iter: 1}", "noop_hook"}),
      *rc::gen::element(1, 2, 3), one_of({"", ", outer_optimizer: {lr: 0.5, momentum: 0.0}"}))};
}

// The ranks up to some, and perhaps those behind them.
std::string drawn_sets(int ranks) {
  const int end = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, ranks));
  std::string first;
  std::string second;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string& set = rank < end ? first : second;
    set += fmt::format("{}{}", set.empty() ? "" : ", ", rank);
  }
  return fmt::format(", process_sets: [[{}]{}]", first,
                     one_of({"", fmt::format(", [{}]", second)}));
}

WayToTrain horovod_ranks(const Devices& devices) {
  const int groups = *rc::gen::element(0, 0, 1, 2);  // which take their order from rank 0
  WayToTrain way{fmt::format("{{HorovodStrategy: {{num_groups: {}, cache_capacity: {}{}}}}}",
                             groups, *rc::gen::element(0, 1024),
                             groups == 0 ? one_of({"", drawn_sets(devices.all())}) : ""),
                 "1.9"};
  way.by_horovodrun = true;
  return way;
}

std::string horovodrun_of(const Devices& devices) {
  std::string hosts;
  for (int node = 0; node < devices.nodes; ++node) {
    hosts += fmt::format("{}{}", node == 0 ? "" : ", ", devices.of_node);
  }
  return fmt::format("launcher: {{horovodrun: {{np: {}, hosts: [{}]}}}}\n", devices.all(), hosts);
}

/// Below it ranks divide weights.
constexpr int first_of_replicas = 11;
/// Below it, of replicas, they exchange in another way than ddp.
constexpr int first_of_ddp = 15;
constexpr int end_of_kinds = 21;

WayToTrain way_to_train(int kind, const Devices& devices) {
  switch (kind) {
    case 0: return pipeline();
    case 1:
    case 2: return tensor_parallel(devices);
    case 3: return hybrid(devices);
    case 4:
    case 5: return fsdp();
    case 6: return fsdp2(devices.all());
    case 7:
    case 8: return deepspeed();
    case 9: return zero_redundancy();
    case 10: return fairscale();
    case 11: return bagua();
    case 12: return averaging();
    case 13: return horovod_ranks(devices);
    case 14: return {"ddp2", "1.6"};
    case 20:
      return {fmt::format("{{DDPStrategy: {{join: true, divide_by_initial_world_size: {}}}}}",
                          one_of({"true", "false"})),
              "2.4"};
    default:
      return {one_of({"ddp", "ddp", "ddp_find_unused_parameters_true",
                      "{DDPStrategy: {static_graph: true}}",
                      "{DDPStrategy: {gradient_as_bucket_view: true, bucket_cap_mb: 1}}",
                      "{DDPStrategy: {ddp_comm_hook: fp16_compress_hook}}", "ddp"})};
  }
}

// Some ranks have fewer batches.
std::string amount_of_data(int samples) {
  const std::string equal = fmt::format("samples: {}", std::max(samples, 1));
  return one_of({equal, equal, equal, equal, equal, equal, equal, equal, equal, equal,
                 "batches: 5 - (rank == 3)", "batches: 4 + rank % 2", "batches: 6 - (rank < 2)"});
}

enum class Faults : uint8_t { perhaps, always };

WideCase wide_training(int first_kind, int end_kind, Faults faults = Faults::perhaps) {
  const int kind = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first_kind, end_kind));
  // Of ranks that divide the weights few are alike, unless there are many.
  const bool has_neighbours = kind < 4;
  const int nodes = kind == 0                   ? *rc::gen::element(12, 18, 24)
                    : has_neighbours            ? *rc::gen::element(6, 12, 24)
                    : kind < first_of_replicas  ? *rc::gen::element(1, 2, 3, 6, 12, 20, 24)
                    : faults == Faults::perhaps ? *rc::gen::element(1, 1, 2, 3, 4, 5, 6)
                                                : *rc::gen::element(2, 6, 9, 12);
  // On few nodes ranks are alike beside each other: some share a PCIe switch, some do not.
  const int devices = nodes < 3 ? *rc::gen::element(3, 5, 8, 8) : *rc::gen::element(1, 1, 2, 3);
  const int ranks = nodes * devices;
  const int batch = kind == 0 ? micro_batches : *rc::gen::inRange(1, 4);
  const int samples = *rc::gen::inRange(2, 9) * batch * ranks + *rc::gen::element(0, 0, 1, -1);
  const std::string own_size = *rc::gen::element(0, 0, 0, 0, 0, 0, 1) == 1 ? "1 + rank % 2" : "";
  const std::string loader =
      one_of({"", "", ", drop_last: true", ", sample_time: 5 us",
              ", sample_time: 40 us, num_workers: 2", ", sampler: unrepeated"});
  const WayToTrain way = way_to_train(kind, {nodes, devices});
  const std::string bf16 =
      way.lightning.starts_with("1.") ? ", precision: bf16" : ", precision: bf16-mixed";
  const bool clips = way.strategy.find("FSDPStrategy") == std::string::npos;
  std::string trainer = one_of({"", ", accumulate_grad_batches: 2", bf16,
                                clips ? ", gradient_clip_val: 0.5" : "", ", max_steps: 5"});
  trainer += one_of({"", "", ", enable_checkpointing: false",
                     ", callbacks: [{ModelCheckpoint: {every_n_train_steps: 3}}]"});
  trainer += one_of({"", "", ", num_sanity_val_steps: 0"});
  // Some cut into equal parts by any of these numbers of ranks, some not.
  const int hidden =
      has_neighbours ? *rc::gen::element(12, 96, 720) : *rc::gen::element(9, 12, 64, 96, 720);
  const std::string validation =
      *rc::gen::element(true, false)
          ? fmt::format(", val: {{samples: {}, batch_size: 2}}", *rc::gen::inRange(1, 40))
          : std::string();
  const std::string program = one_of(hooks());
  // Some of the models fit.
  const std::string memory =
      one_of({"", "", "", "", "", "", ", gpu: {memory: 24 KiB}", ", gpu: {memory: 96 KiB}"}) +
      one_of({"", "", ", disk: 1 MB/s"});
  return {fmt::format(
      "version: 1\n"
      "versions: {{lightning: \"{}\"{}}}\n"
      "cluster: {{preset: dgx-a100, nodes: {}{}}}\n"
      "optimizer: {{{}}}\n"
      "model: {{input: [6], layers: [{{Linear: [6, {}]}}, {}, {{Linear: [{}, 3]}}], loss: "
      "MSELoss}}\n"
      "data: {{train: {{{}, batch_size: {}{}}}{}}}\n"
      "trainer: {{accelerator: gpu, devices: {}{}, strategy: {}, max_epochs: {}{}}}\n"
      "{}{}{}",
      way.lightning, one_of({"", "", ", kernels: pytorch"}), nodes, memory, way.optimizer, hidden,
      has_neighbours ? "ReLU" : one_of({"ReLU", fmt::format("{{BatchNorm1d: {}}}", hidden)}),
      hidden, amount_of_data(samples), own_size.empty() ? fmt::to_string(batch) : own_size, loader,
      validation, devices, way.by_horovodrun ? "" : fmt::format(", num_nodes: {}", nodes),
      way.strategy, *rc::gen::inRange(1, 4), trainer,
      way.by_horovodrun ? horovodrun_of({nodes, devices}) : "",
      program.empty() ? "" : "program: " + program + "\n",
      drawn_faults(ranks, nodes, true, faults == Faults::always))};
}

WideCase wide_bare_program(Faults faults = Faults::perhaps) {
  const int ranks = *rc::gen::inRange(3, 12);
  std::string statements;
  for (int count = *rc::gen::inRange(1, 6); count > 0; --count) {
    statements +=
        one_of({"kernel: 1 ms", "host: 20 us", "barrier: null",
                "all_reduce: {elements: 100, async: true, as: sum}", "all_gather: {elements: 10}",
                "broadcast: {elements: 7, src: 0}", "broadcast: {elements: 7, src: 2}",
                "if: rank == 0, then: [{kernel: 2 ms}]",
                "if: rank < 2, then: [{host: 2 ms}], else: [{kernel: 3 ms}]",
                "if: rank == 1, then: [{all_reduce: {elements: 3}}]",
                "if: rank != 4, then: [{kernel: 10 us}]", "send: {elements: 4, dst: 0}"});
    statements += "\x1f";
  }
  std::string list;
  for (size_t begin = 0; begin < statements.size();) {
    const size_t end = statements.find('\x1f', begin);
    list += (list.empty() ? "{" : ", {") + statements.substr(begin, end - begin) + "}";
    begin = end + 1;
  }
  return {
      fmt::format("version: 1\n"
                  "cluster: {{ranks: {}, network: {{bandwidth: 10 GB/s, latency: 3 us}}}}\n"
                  "program: {{main: [{{repeat: {}, do: [{}]}}, synchronize: null]}}\n{}",
                  ranks, *rc::gen::inRange(1, 4), list,
                  drawn_faults(ranks, 0, false, faults == Faults::always))};
}

}  // namespace

std::string text_of(const WideCase& wide, bool all_ranks, bool all_steps) {
  return wide.text + fmt::format("verify: {{numerics: false, all_ranks: {}, all_steps: {}}}\n",
                                 all_ranks, all_steps);
}

std::ostream& operator<<(std::ostream& out, const WideCase& wide) {
  return out << text_of(wide, false, false);
}

rc::Gen<WideCase> wide_cases() {
  return rc::gen::exec([] {
    switch (*rc::gen::element(0, 0, 0, 1, 2)) {
      case 0: return wide_training(0, end_of_kinds);
      case 1: return wide_megatron(micro_batches);
      default: return wide_bare_program();
    }
  });
}

rc::Gen<WideCase> wide_faulty_cases() {
  return rc::gen::exec([] {
    switch (*rc::gen::element(0, 0, 0, 1, 1, 2)) {
      case 0: return wide_training(first_of_ddp, end_of_kinds, Faults::always);
      case 1: return wide_training(0, first_of_ddp, Faults::always);
      default: return wide_bare_program(Faults::always);
    }
  });
}

rc::Gen<WideCase> wide_exchange_cases() {
  return rc::gen::exec([] { return wide_training(first_of_replicas, first_of_ddp); });
}

}  // namespace lockstep::test
