#include "rehearsal/plan/layout_task.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/tensor_parallel/automatic_plan.hpp"
#include "model/scenario/scenario.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/registry.hpp"
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
  made.model = fmt::format("{} ({} parameters)", network.name.empty() ? "model" : network.name,
                           count_text(network.parameter_elements()));
  made.machine = machine.name;
  return made;
}

}  // namespace lockstep::cli
