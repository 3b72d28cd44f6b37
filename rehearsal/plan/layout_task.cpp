#include "rehearsal/plan/layout_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/network/tensor_parallel/automatic_plan.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/scenario/scenario.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/registry.hpp"
#include "rehearsal/run/kernels.hpp"
#include "rehearsal/run/machine.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

TaskOfScenario refused(std::string why_not) {
  TaskOfScenario task;
  task.why_not = std::move(why_not);
  return task;
}

std::string first_problem(const Preparation& preparation) {
  for (const Problem& problem : preparation.problems) {
    if (problem.kind != Problem::Kind::note && problem.kind != Problem::Kind::warning) {
      return problem.message;
    }
  }
  return "";
}

Bytes state_bytes(const TrainingPlan& plan) {
  int tensors = 0;
  for (const OptimizerPlan& optimizer : plan.optimizers) {
    tensors = std::max(tensors, state_tensors(optimizer));
  }
  return Bytes(size_of(plan.parameter_dtype)) * tensors;
}

int64_t repeated_blocks(const Network& network) {
  return std::ranges::count_if(network.blocks,
                               [](const NetworkBlock& block) { return block.repeats; });
}

/// Layers of blocks that repeat.
std::vector<bool> in_blocks(const Network& network) {
  std::vector<bool> inside(network.layers.size(), false);
  for (const NetworkBlock& block : network.blocks) {
    for (size_t layer = block.first; block.repeats && layer <= block.last; ++layer) {
      inside[layer] = true;
    }
  }
  return inside;
}

/// Kernels by data sheets. Under context parallelism attention is computed otherwise, with as many
/// operations: what it moves does not count there.
LeastTimes least_times(const Network& network, const DeviceModel& device, DType dtype,
                       int64_t micro_batch, int32_t tensor, int32_t context) {
  const std::vector<bool> inside = in_blocks(network);
  const int64_t parts = int64_t{tensor} * context;
  LeastTimes times;
  for (size_t index = 0; index < network.layers.size(); ++index) {
    const Layer& layer = network.layers[index];
    const auto time_of = [&](std::initializer_list<Pass> passes) {
      Flops flops{};
      Bytes moved{};
      for (const Pass pass : passes) {
        flops += flops_of(layer, pass, micro_batch);
        moved += moved_bytes(layer, pass, micro_batch, dtype);
      }
      return roofline_time(device, dtype, flops / parts, context > 1 ? Bytes{} : moved / parts);
    };
    const Time forward = time_of({Pass::forward});
    const Time both = forward + time_of({Pass::input_gradient, Pass::weight_gradient});
    (inside[index] ? times.blocks : times.others) += both;
    times.blocks_again += inside[index] ? forward : Time{};
  }
  return times;
}

/// Whether something else than data sheets prices kernels.
bool prices_otherwise(const Preparation& preparation, const Machine& machine) {
  const Scenario& scenario = *preparation.scenario;
  const bool is_calibrated = scenario.cluster && scenario.cluster->calibration;
  return is_calibrated || kernel_machine(scenario, machine.cluster.node.device).has_value();
}

/// Every exchange of an activation in a block brings the tensor ranks what they lack in the
/// forward, in the backward, or in both.
int64_t exchanges_of(const Network& cut, int64_t elements) {
  const std::vector<bool> inside = in_blocks(cut);
  int64_t count = 0;
  for (size_t index = 0; index < cut.layers.size(); ++index) {
    const Layer& layer = cut.layers[index];
    const bool is_whole = std::max(elements_of(layer.input), elements_of(layer.output)) >= elements;
    count += inside[index] && layer.kind == LayerKind::exchange && is_whole ? 1 : 0;
  }
  return count;
}

/// By the numbers of tensor ranks: of an automatic plan and of Megatron-LM's, whichever has fewer.
std::map<int32_t, int64_t> exchanges_by_ranks(const Network& network, int32_t most,
                                              int64_t elements) {
  std::map<int32_t, int64_t> exchanges;
  for (int32_t ranks = 2; ranks <= most; ranks *= 2) {
    std::vector<CutNetwork> cuts;
    cuts.push_back(cut_network(network, automatic_plan(network, ranks), ranks));
    cuts.push_back(cut_as_megatron(network, ranks, true));
    for (const CutNetwork& cut : cuts) {
      if (cut.why_not.empty()) {
        const int64_t count = exchanges_of(cut.network, elements);
        const auto [known, is_new] = exchanges.try_emplace(ranks, count);
        known->second = std::min(known->second, count);
      }
    }
  }
  return exchanges;
}

KeptActivations kept_by(const Network& network, DType dtype) {
  const std::vector<bool> inside = in_blocks(network);
  Bytes all{};
  Bytes cores{};
  Bytes others = network.loss.activation_bytes(dtype);
  for (size_t index = 0; index < network.layers.size(); ++index) {
    const Layer& layer = network.layers[index];
    const Bytes kept = layer.activation_bytes(dtype);
    (inside[index] ? all : others) += kept;
    if (!inside[index]) {
      continue;
    }
    if (layer.attention_core) {
      const Bytes core = Bytes(size_of(dtype)) * layer.attention_core->elements;
      cores += std::min(kept, core + layer.attention_core->fixed);
    }
  }
  Bytes between{};
  for (const NetworkBlock& block : network.blocks) {
    if (block.repeats) {
      between += Bytes(size_of(dtype)) * elements_of(network.layers[block.first].input);
    }
  }
  return {{all, std::max(all - cores, between), between}, others};
}

/// By the numbers of tensor ranks that a network can be cut for.
std::map<int32_t, KeptActivations> kept_by_ranks(
    const Network& network, DType dtype, int32_t most,
    const std::function<CutNetwork(int32_t ranks)>& cut) {
  std::map<int32_t, KeptActivations> kept{{1, kept_by(network, dtype)}};
  for (int32_t ranks = 2; ranks <= most; ranks *= 2) {
    if (const CutNetwork own = cut(ranks); own.why_not.empty()) {
      kept[ranks] = kept_by(own.network, dtype);
    }
  }
  return kept;
}

LayoutBounds bounds_of(const Preparation& preparation, const Machine& machine,
                       const LayoutTask& task) {
  const std::shared_ptr<const Network> network = preparation.network;
  const DType dtype = preparation.plan.activation_dtype;
  const NodeModel& node = machine.cluster.node;
  LayoutBounds bounds;
  if (!prices_otherwise(preparation, machine) && !machine.is_flat) {
    bounds.times = [network, dtype, device = node.device](int64_t micro_batch, int32_t tensor,
                                                          int32_t context) {
      return least_times(*network, device, dtype, micro_batch, tensor, context);
    };
  }
  for (const NetworkBlock& block : network->blocks) {
    if (block.repeats) {
      bounds.between_blocks =
          Bytes(size_of(dtype)) * elements_of(network->layers[block.first].input);
    }
  }
  const int32_t most = task.cuts_layers ? task.ranks_per_node : 1;
  bounds.kept = kept_by_ranks(*network, dtype, most, [&](int32_t ranks) {
    return cut_network(*network, automatic_plan(*network, ranks), ranks);
  });
  bounds.kept_by_megatron = kept_by_ranks(
      *network, dtype, most, [&](int32_t ranks) { return cut_as_megatron(*network, ranks, true); });
  if (task.cuts_layers) {
    bounds.exchanges = exchanges_by_ranks(*network, task.ranks_per_node,
                                          bounds.between_blocks.count() / size_of(dtype));
  }
  bounds.between_devices = node.nvlink > BytesPerSecond{} ? node.nvlink : node.pcie;
  bounds.between_nodes = machine.cluster.network.bandwidth * node.nics;
  return bounds;
}

/// Of experts, whose grouped weights or modules are all but the router's.
void count_experts(const Network& network, LayoutTask& task) {
  for (const Layer& layer : network.layers) {
    if (const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments)) {
      task.experts = mixture->num_experts;
      task.expert_parameters += mixture->weights_per_expert() * mixture->hidden_dim *
                                mixture->embed_dim * mixture->num_experts;
    }
  }
}

bool is_for_megatron(const TrainingPlan& plan, const Network& network) {
  return plan.optimizers.size() == 1 &&
         rule_of(plan.optimizers.front().kind).kernel() != Kernel::optimizer_step &&
         network.modules.empty() && !is_floating(network.input_dtype) &&
         cut_as_megatron(network, 2, true).why_not.empty();
}

int64_t samples_of(const Scenario& scenario, int32_t ranks) {
  const bool has_loader = scenario.data && scenario.data->train.size() == 1;
  const int64_t batch =
      has_loader ? value_or(scenario.data->train.front().batch_size, int64_t{1}) : 1;
  const int64_t accumulated =
      scenario.trainer ? value_or(scenario.trainer->accumulate_grad_batches, int64_t{1}) : 1;
  return batch * accumulated * ranks;
}

}  // namespace

TaskOfScenario task_of(const CaseSource& source, std::optional<int64_t> samples) {
  const LoadedScenarios loaded = source.load({"trainer.strategy=ddp"});
  if (!loaded.ok()) {
    return refused(loaded.diagnostics.front().message);
  }
  const Scenario& scenario = loaded.scenarios.front();
  const Preparation preparation = prepare(scenario, all_strategies(), WorldAbilities{});
  if (const std::string problem = first_problem(preparation); !problem.empty()) {
    return refused(problem);
  }
  if (preparation.network == nullptr) {
    return refused("a bare program has no layout: write a trainer");
  }
  const Machine machine = machine_of(preparation);
  const Network& network = *preparation.network;
  TaskOfScenario made;
  LayoutTask& task = made.task;
  task.ranks = preparation.options.world_size;
  task.ranks_per_node =
      std::max(1, machine.ranks_per_node > 0 ? machine.ranks_per_node
                                             : preparation.placement.launch.processes_per_node);
  task.samples = samples.value_or(samples_of(scenario, task.ranks));
  task.blocks = repeated_blocks(network);
  task.parameters = network.parameter_elements();
  task.parameter_bytes = Bytes(size_of(preparation.plan.parameter_dtype));
  task.state_bytes = state_bytes(preparation.plan);
  task.device_memory = machine.cluster.node.device.memory;
  task.cuts_layers = !automatic_plan(network, 2).empty();
  task.marks_checkpoints = network.segments.empty() && task.blocks > 0;
  task.has_cores = std::ranges::any_of(network.layers, [](const Layer& layer) {
    return layer.attention_core && layer.attention_core->elements > 0;
  });
  task.is_megatron = task.blocks > 0 && is_for_megatron(preparation.plan, network);
  task.positions = network.input.empty() ? 0 : network.input.front();
  count_experts(network, task);
  task.bounds = bounds_of(preparation, machine, task);
  made.model = fmt::format("{} ({} parameters)", network.name.empty() ? "model" : network.name,
                           count_text(network.parameter_elements()));
  made.machine = machine.name;
  return made;
}

}  // namespace lockstep::cli
