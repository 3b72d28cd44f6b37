// A loss that compares the samples of a batch with each other.
#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

bool gathers(const Layer& loss) {
  return compares_samples(loss.kind) && std::get<LossArguments>(loss.arguments).gathers_samples;
}

bool gathers_in(const Network& network) {
  return gathers(network.loss) || std::ranges::any_of(network.modules, [](const auto& module) {
           return gathers(module.loss);
         });
}

}  // namespace

// lightly gathers where torch.distributed has several ranks, whoever has initialised it.
void check_gathered_samples(Preparation& preparation, const TrainingProgram& program) {
  const StrategyTraits& traits = preparation.placement.traits;
  const Scenario& scenario = *preparation.scenario;
  if (!gathers_in(*program.network) || traits.world_is_data_parallel || !scenario.model) {
    return;
  }
  if (traits.is_one_process()) {
    add_problem(preparation, Problem::Kind::note, scenario.model->place,
                "`gather_distributed` has no effect: there is one process, and each of its devices "
                "compares the samples of its own part of the batch; a loss in training_step_end "
                "(`loss_in`) compares those of all devices");
    return;
  }
  add_problem(
      preparation, Problem::Kind::unsupported, scenario.model->place,
      "`gather_distributed` of a loss that compares samples is not modelled under this strategy",
      traits.drives_all_devices()
          ? "compute the loss in training_step_end (`loss_in`), which has the batch of a "
            "node, or use ddp"
          : "use ddp, fsdp, deepspeed or ddp_sharded, or leave it out");
}

bool asks_for_loss_of_whole_batch(const Scenario& scenario) {
  return scenario.model &&
         value_or(scenario.model->loss_in, LossHook::training_step) == LossHook::training_step_end;
}

void check_loss_of_whole_batch(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  if (!asks_for_loss_of_whole_batch(scenario)) {
    return;
  }
  const SourcePlace& place = scenario.model->loss_in->place;
  if (preparation.placement.lightning >= Version{2, 0, 0}) {
    add_problem(preparation, Problem::Kind::refused, place,
                "`training_step_end` has been removed in Lightning 2.0",
                "compute the loss in training_step, where each rank has its own samples",
                refused_code);
  } else if (!preparation.placement.traits.drives_all_devices()) {
    add_problem(preparation, Problem::Kind::note, place,
                "`loss_in` has no effect: each process has one device, whose outputs alone "
                "training_step_end gets");
  }
}

}  // namespace lockstep
