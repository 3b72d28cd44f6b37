// Models without parameters, or without any that is trained.
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

bool holds_parameters(const OptimizerPlan& optimizer, const Network& network) {
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    if (optimizer.holds(layer) && !network.layers[layer].parameters.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

// torch/nn/parallel/distributed.py and torch/optim/optimizer.py; Lightning wraps the model first
// (strategies/ddp.py, setup). A frozen model without a wrapper comes as far as its first backward.
void check_trainable(Preparation& preparation, const TrainingProgram& program) {
  const Hook* main =
      preparation.scenario->program ? preparation.scenario->program->find("main") : nullptr;
  if (main != nullptr && find_statement(*main, StatementKind::fit) == nullptr) {
    return;  // nothing is wrapped, and no optimizer made
  }
  const Network& network = *program.network;
  const Scenario& scenario = *preparation.scenario;
  if (preparation.placement.traits.wraps_in_ddp && network.trainable_elements() == 0) {
    add_problem(
        preparation, Kind::refused,
        scenario.trainer->strategy ? scenario.trainer->strategy->place : scenario.trainer->place,
        "DistributedDataParallel is not needed when a module doesn't have any parameter "
        "that requires a gradient.",
        "let a layer train (`trainable: true`), or validate in place of a fit", refused_code);
    return;
  }
  for (size_t i = 0; i < program.plan.optimizers.size(); ++i) {
    if (!holds_parameters(program.plan.optimizers[i], network)) {
      const SourcePlace& place = scenario.optimizers[i].place;
      add_problem(preparation, Kind::refused,
                  place.line > 0 || !scenario.model ? place : scenario.model->place,
                  "optimizer got an empty parameter list",
                  "give the model a layer with parameters, or validate in place of a fit",
                  refused_code);
      return;
    }
  }
}

}  // namespace lockstep
