#include "rehearsal/plan/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

/// How model states are divided over data-parallel ranks; 0: not at all.
struct Division {
  const char* name;
  const char* strategy;
  bool parameters = false;
  bool gradients = false;
  bool state = false;
  bool in_node_alone = false;  ///< HYBRID_SHARD
};
constexpr Division divisions[] = {
    {"ddp", "ddp"},
    {"ZeRO-1", "deepspeed_stage_1", false, false, true},
    {"ZeRO-2", "deepspeed_stage_2", false, true, true},
    {"FSDP SHARD_GRAD_OP",
     "{FSDPStrategy: {sharding_strategy: SHARD_GRAD_OP, auto_wrap_policy: blocks}}", false, true,
     true},
    {"FSDP HYBRID_SHARD",
     "{FSDPStrategy: {sharding_strategy: HYBRID_SHARD, auto_wrap_policy: blocks}}", true, true,
     true, true},
    {"FSDP", "{FSDPStrategy: {auto_wrap_policy: blocks}}", true, true, true},
    {"ZeRO-3", "deepspeed_stage_3", true, true, true},
};

/// A rank may hold its parameters and gradients in two bytes, whatever the optimizer updates.
constexpr int64_t least_bytes = 2;
constexpr int64_t most_micro_batch = 64;
constexpr int32_t most_stages = 64;

/// Bytes of a rank, at least: `parts` are the ranks that each kind of state is divided over.
Bytes states_of(const LayoutTask& task, int64_t replica_ranks, int64_t parameter_parts,
                int64_t gradient_parts, int64_t state_parts) {
  const double own = static_cast<double>(task.parameters) / static_cast<double>(replica_ranks);
  const auto narrow = static_cast<double>(std::min(task.parameter_bytes.count(), least_bytes));
  const double bytes =
      narrow / static_cast<double>(parameter_parts) + narrow / static_cast<double>(gradient_parts) +
      static_cast<double>(task.state_bytes.count()) / static_cast<double>(state_parts);
  return Bytes(static_cast<int64_t>(own * bytes));
}

class LayoutMaker {
 public:
  explicit LayoutMaker(const LayoutTask& task) : task_(task) {}

  std::vector<Layout> make() {
    for (const bool checkpoints : {false, true}) {
      if (checkpoints && !task_.marks_checkpoints) {
        continue;
      }
      checkpoints_ = checkpoints;
      add_data_parallel();
      for (int32_t tensor = 1; tensor <= task_.ranks_per_node; tensor *= 2) {
        add_tensor_parallel(tensor);
      }
      for (int32_t stages = 2; stages <= std::min(task_.ranks, most_stages); stages *= 2) {
        for (int32_t tensor = 1; tensor <= task_.ranks_per_node; tensor *= 2) {
          add_pipelines(stages, tensor);
        }
      }
    }
    return std::move(layouts_);
  }

 private:
  void add_data_parallel();
  void add_tensor_parallel(int32_t tensor);
  void add_pipelines(int32_t stages, int32_t tensor);
  void add_accumulating(Layout layout, int64_t replicas);
  void add_schedules(const Layout& layout, int32_t stages, int32_t tensor, int64_t replicas);
  bool divides(int64_t replicas) const { return task_.samples % replicas == 0; }

  const LayoutTask& task_;
  bool checkpoints_ = false;
  int64_t family_ = 0;
  std::vector<Layout> layouts_;
};

/// Batches that are accumulated are the micro-batches.
void LayoutMaker::add_accumulating(Layout layout, int64_t replicas) {
  const int64_t own = task_.samples / replicas;
  layout.family = ++family_;
  layout.replicas = replicas;
  layout.checkpoints = checkpoints_;
  for (int64_t micro = most_micro_batch; micro >= 1; micro /= 2) {
    if (own % micro == 0) {
      layout.micro_batch = micro;
      layout.batch_size = micro;
      layout.accumulated = own / micro;
      layouts_.push_back(layout);
    }
  }
}

void LayoutMaker::add_data_parallel() {
  const int64_t ranks = task_.ranks;
  if (!divides(ranks)) {
    return;
  }
  for (const Division& division : divisions) {
    const bool is_divided = division.state;
    const bool has_nodes = task_.ranks > task_.ranks_per_node;
    if ((is_divided && ranks == 1) || (division.in_node_alone && !has_nodes)) {
      continue;
    }
    const int64_t parts = division.in_node_alone ? task_.ranks_per_node : ranks;
    Layout layout;
    layout.strategy = division.strategy;
    layout.description = division.name;
    layout.model_states = states_of(task_, 1, division.parameters ? parts : 1,
                                    division.gradients ? parts : 1, division.state ? parts : 1);
    add_accumulating(layout, ranks);
  }
}

/// With one rank a replica it is FSDP2 alone.
void LayoutMaker::add_tensor_parallel(int32_t tensor) {
  const bool is_cut = tensor > 1;
  if (task_.ranks % tensor != 0 || task_.ranks == 1 || (is_cut && !task_.cuts_layers)) {
    return;
  }
  const int32_t replicas = task_.ranks / tensor;
  if (!divides(replicas)) {
    return;
  }
  Layout layout;
  layout.strategy = fmt::format(
      "{{ModelParallelStrategy: {{data_parallel_size: {}, tensor_parallel_size: {}, "
      "{}fully_shard: {{modules: blocks}}}}}}",
      replicas, tensor, is_cut ? "parallelize_plan: auto, " : "");
  layout.description = !is_cut         ? "FSDP2"
                       : replicas == 1 ? fmt::format("tensor {}", tensor)
                                       : fmt::format("tensor {} x FSDP2 {}", tensor, replicas);
  layout.model_states = states_of(task_, tensor, replicas, replicas, replicas);
  add_accumulating(layout, replicas);
}

void LayoutMaker::add_pipelines(int32_t stages, int32_t tensor) {
  const int32_t in_replica = stages * tensor;
  const bool is_possible =
      task_.blocks >= stages && task_.ranks % in_replica == 0 && (tensor == 1 || task_.cuts_layers);
  if (!is_possible || !divides(task_.ranks / in_replica)) {
    return;
  }
  const int64_t replicas = task_.ranks / in_replica;
  Layout layout;
  layout.checkpoints = checkpoints_;
  layout.replicas = replicas;
  layout.batch_size = task_.samples / replicas;
  layout.model_states = states_of(task_, in_replica, 1, 1, 1);
  layout.description = fmt::format("pipeline {}", stages);
  if (tensor > 1) {
    layout.description += fmt::format(" x tensor {}", tensor);
  }
  if (replicas > 1) {
    layout.description += fmt::format(" x data {}", replicas);
  }
  add_schedules(layout, stages, tensor, replicas);
}

/// One stage a rank, and two where there are blocks for them.
void LayoutMaker::add_schedules(const Layout& layout, int32_t stages, int32_t tensor,
                                int64_t replicas) {
  const int64_t own = task_.samples / replicas;
  struct Schedule {
    const char* name;
    int32_t stages_per_rank;
  };
  for (const Schedule& schedule : {Schedule{"1F1B", 1}, Schedule{"Interleaved1F1B", 2}}) {
    if (task_.blocks < int64_t{stages} * schedule.stages_per_rank) {
      continue;
    }
    Layout of_schedule = layout;
    of_schedule.family = ++family_;
    of_schedule.description += fmt::format(", {}", schedule.name);
    for (int64_t micro = most_micro_batch; micro >= 1; micro /= 2) {
      const int64_t count = own / micro;
      if (own % micro != 0 || count < stages || count % stages != 0) {
        continue;  // fewer micro-batches than stages, or a round that is not full
      }
      of_schedule.micro_batch = micro;
      of_schedule.strategy = fmt::format(
          "{{PipelineStrategy: {{schedule: {}, n_microbatches: {}, pipeline_parallel_size: {}, "
          "stages: {}{}}}}}",
          schedule.name, count, stages, stages * schedule.stages_per_rank,
          tensor > 1 ? fmt::format(", tensor_parallel_size: {}, parallelize_plan: auto", tensor)
                     : "");
      layouts_.push_back(of_schedule);
    }
  }
}

}  // namespace

std::vector<std::string> Layout::settings(const LayoutTask& task) const {
  std::vector<std::string> settings = {
      "trainer.strategy=" + strategy,
      fmt::format("data.train.batch_size={}", batch_size),
      fmt::format("trainer.accumulate_grad_batches={}", accumulated),
  };
  if (task.marks_checkpoints) {
    settings.push_back(
        fmt::format("model.activation_checkpointing={}", checkpoints ? "full" : "none"));
  }
  return settings;
}

std::vector<Layout> layouts_of(const LayoutTask& task) { return LayoutMaker(task).make(); }

std::vector<std::string> not_tried() {
  return {"context and expert parallelism",
          "tensor parallelism across nodes",
          "sharded states within a pipeline",
          "selective activation checkpointing",
          "offload",
          "zero-bubble schedules",
          "sizes and micro-batches that are no powers of two"};
}

}  // namespace lockstep::cli
