#include "rehearsal/plan/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rehearsal/plan/layout_bounds.hpp"

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
  /// Whole parameters may be held in two bytes beside what is divided (DeepSpeed, and what FSDP
  /// gathers).
  bool is_narrow = false;
};
constexpr Division divisions[] = {
    {"ddp", "ddp"},
    {"ZeRO-1", "deepspeed_stage_1", false, false, true, false, true},
    {"ZeRO-2", "deepspeed_stage_2", false, true, true, false, true},
    {"FSDP SHARD_GRAD_OP",
     "{FSDPStrategy: {sharding_strategy: SHARD_GRAD_OP, auto_wrap_policy: blocks}}", false, true,
     true, false, true},
    {"FSDP HYBRID_SHARD",
     "{FSDPStrategy: {sharding_strategy: HYBRID_SHARD, auto_wrap_policy: blocks}}", true, true,
     true, true},
    {"FSDP", "{FSDPStrategy: {auto_wrap_policy: blocks}}", true, true, true},
    {"ZeRO-3", "deepspeed_stage_3", true, true, true, false, true},
};

/// As in the lower bounds.
constexpr int64_t least_bytes = least_parameter_bytes;
constexpr int64_t most_micro_batch = 64;
constexpr int32_t most_stages = 64;

int64_t narrow_bytes(const LayoutTask& task) {
  return std::min(task.parameter_bytes.count(), least_bytes);
}

/// How many ranks each kind of model state is divided over.
struct StateParts {
  int64_t parameters = 1;
  int64_t gradients = 1;
  int64_t optimizer = 1;
};

/// Bytes of a rank, at least. `element_bytes`: of a parameter and of its gradient.
Bytes states_of(const LayoutTask& task, int64_t replica_ranks, const StateParts& parts,
                int64_t element_bytes) {
  const double own = static_cast<double>(task.parameters) / static_cast<double>(replica_ranks);
  const auto element = static_cast<double>(element_bytes);
  const double bytes =
      element / static_cast<double>(parts.parameters) +
      element / static_cast<double>(parts.gradients) +
      static_cast<double>(task.state_bytes.count()) / static_cast<double>(parts.optimizer);
  return Bytes(static_cast<int64_t>(own * bytes));
}

class LayoutMaker {
 public:
  explicit LayoutMaker(const LayoutTask& task) : task_(task) {}

  std::vector<Layout> make() {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      if ((recompute != Recompute::none && !task_.marks_checkpoints) ||
          (recompute == Recompute::selective && !task_.has_cores)) {
        continue;
      }
      recompute_ = recompute;
      add_data_parallel();
      for (int32_t tensor = 1; tensor <= task_.ranks_per_node; tensor *= 2) {
        add_tensor_parallel(tensor);
      }
      for (int32_t stages = 2; stages <= std::min(task_.ranks, most_stages); stages *= 2) {
        for (int32_t tensor = 1; tensor <= task_.ranks_per_node; tensor *= 2) {
          add_pipelines(stages, tensor);
        }
      }
      if (task_.is_megatron) {
        add_megatron();
      }
    }
    return std::move(layouts_);
  }

 private:
  void add_data_parallel();
  void add_tensor_parallel(int32_t tensor);
  void add_pipelines(int32_t stages, int32_t tensor);
  void add_accumulating(Layout layout, int64_t replicas);
  void add_megatron();
  void add_megatron(Layout layout, int32_t experts);
  void add(Layout layout);
  void add_schedules(const Layout& layout, int32_t stages, int32_t tensor, int64_t replicas);
  bool divides(int64_t replicas) const { return task_.samples % replicas == 0; }

  const LayoutTask& task_;
  Recompute recompute_ = Recompute::none;
  int64_t family_ = 0;
  std::vector<Layout> layouts_;
};

/// Batches that are accumulated are the micro-batches.
void LayoutMaker::add_accumulating(Layout layout, int64_t replicas) {
  const int64_t own = task_.samples / replicas;
  layout.family = ++family_;
  layout.replicas = replicas;
  layout.recompute = recompute_;
  for (int64_t micro = most_micro_batch; micro >= 1; micro /= 2) {
    if (own % micro == 0) {
      layout.micro_batch = micro;
      layout.batch_size = micro;
      layout.accumulated = own / micro;
      add(layout);
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
    layout.gathers = division.parameters && !division.in_node_alone;
    layout.model_states =
        states_of(task_, 1,
                  {division.parameters ? parts : 1, division.gradients ? parts : 1,
                   division.state ? parts : 1},
                  division.is_narrow ? narrow_bytes(task_) : task_.parameter_bytes.count());
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
  layout.tensor = tensor;
  layout.gathers = replicas > 1;
  layout.model_states =
      states_of(task_, tensor, {replicas, replicas, replicas}, task_.parameter_bytes.count());
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
  layout.recompute = recompute_;
  layout.replicas = replicas;
  layout.batch_size = task_.samples / replicas;
  layout.stages = stages;
  layout.tensor = tensor;
  layout.model_states = states_of(task_, in_replica, {}, task_.parameter_bytes.count());
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
    of_schedule.stages_per_rank = schedule.stages_per_rank;
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
      add(of_schedule);
    }
  }
}

/// Megatron-LM's tensor, context and pipeline parallelism with its distributed optimizer. With one
/// rank of each it is ZeRO-1 with other buffers, which is among the others.
void LayoutMaker::add_megatron() {
  constexpr int32_t most_context = 16;
  for (int32_t tensor = 1; tensor <= task_.ranks_per_node; tensor *= 2) {
    for (int32_t context = 1; context <= most_context; context *= 2) {
      for (int32_t stages = 1; stages <= most_stages; stages *= 2) {
        const int32_t in_replica = tensor * context * stages;
        const bool is_possible =
            in_replica > 1 && task_.ranks % in_replica == 0 && task_.blocks % stages == 0 &&
            (context == 1 || task_.positions % (2 * context) == 0) &&
            (tensor == 1 || task_.cuts_layers) && divides(task_.ranks / in_replica);
        if (!is_possible) {
          continue;
        }
        Layout layout;
        layout.recompute = recompute_;
        layout.stages = stages;
        layout.tensor = tensor;
        layout.context = context;
        layout.replicas = task_.ranks / in_replica;
        layout.batch_size = task_.samples / layout.replicas;
        for (int32_t experts = 1; experts <= std::max<int64_t>(1, task_.experts); experts *= 2) {
          if (layout.replicas * context % experts == 0 &&
              (experts == 1 || task_.experts % experts == 0)) {
            add_megatron(layout, experts);
          }
        }
      }
    }
  }
}

void LayoutMaker::add_megatron(Layout layout, int32_t experts) {
  const auto sharing = static_cast<double>(layout.replicas * layout.context);
  const auto own = [&](int64_t elements, int32_t divided) {
    return static_cast<double>(elements) / (layout.stages * layout.tensor * divided);
  };
  const double parameters =
      own(task_.parameters - task_.expert_parameters, 1) + own(task_.expert_parameters, experts);
  const int64_t element_bytes = narrow_bytes(task_) + task_.parameter_bytes.count();
  layout.is_megatron = true;
  layout.model_states = Bytes(
      static_cast<int64_t>(parameters * static_cast<double>(element_bytes) +
                           static_cast<double>(task_.parameters) / (layout.stages * layout.tensor) *
                               static_cast<double>(task_.state_bytes.count()) / sharing));
  layout.description = "Megatron";
  for (const auto& [name, size] :
       {std::pair("tensor", layout.tensor), std::pair("context", layout.context),
        std::pair("expert", experts), std::pair("pipeline", layout.stages)}) {
    layout.description += size > 1 ? fmt::format(" {} {}", name, size) : "";
  }
  layout.family = ++family_;
  for (int64_t micro = most_micro_batch; micro >= 1; micro /= 2) {
    if (layout.batch_size % micro != 0) {
      continue;
    }
    layout.micro_batch = micro;
    layout.strategy = fmt::format(
        "{{MegatronStrategy: {{tensor_model_parallel_size: {}, sequence_parallel: {}, "
        "context_parallel_size: {}, pipeline_model_parallel_size: {}{}, micro_batch_size: {}, "
        "global_batch_size: {}, ddp: {{DistributedDataParallelConfig: {{use_distributed_optimizer: "
        "true, overlap_grad_reduce: true, overlap_param_gather: true}}}}}}}}",
        layout.tensor, layout.tensor > 1, layout.context, layout.stages,
        experts > 1 ? fmt::format(", expert_model_parallel_size: {}", experts) : "", micro,
        task_.samples);
    add(layout);
  }
}

void LayoutMaker::add(Layout layout) {
  layout.least_time = least_time_of(task_, layout);
  layout.least_memory = least_memory_of(task_, layout);
  layout.simulated_blocks = simulated_blocks(task_, layout);
  layouts_.push_back(std::move(layout));
}

}  // namespace

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::selective: return "selective";
    case Recompute::full: return "full";
    case Recompute::none: break;
  }
  return "none";
}

std::vector<std::string> Layout::settings(const LayoutTask& task) const {
  std::vector<std::string> settings = {
      "trainer.strategy=" + strategy,
      fmt::format("data.train.batch_size={}", batch_size),
      fmt::format("trainer.accumulate_grad_batches={}", accumulated),
  };
  if (task.marks_checkpoints) {
    settings.push_back(fmt::format("model.activation_checkpointing={}", name_of(recompute)));
  }
  return settings;
}

std::vector<Layout> layouts_of(const LayoutTask& task) { return LayoutMaker(task).make(); }

std::vector<std::string> not_tried() {
  return {"context and expert parallelism outside of MegatronStrategy",
          "tensor parallelism across nodes",
          "sharded parameters within a pipeline",
          "virtual stages of MegatronStrategy",
          "offload",
          "zero-bubble schedules",
          "sizes and micro-batches that are no powers of two"};
}

}  // namespace lockstep::cli
