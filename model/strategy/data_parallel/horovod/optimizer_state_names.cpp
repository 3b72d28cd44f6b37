#include "model/strategy/data_parallel/horovod/optimizer_state_names.hpp"

#include <fmt/format.h>

#include <set>

#include "model/network/network.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

namespace {

using Keys = std::vector<std::string_view>;

// The keys of torch's state of one parameter, counters first.
Keys keys_of(const OptimizerPlan& plan, size_t tensors) {
  switch (plan.kind) {
    case OptimizerKind::sgd: return {"momentum_buffer"};
    case OptimizerKind::adagrad: return {"step", "sum"};
    case OptimizerKind::adadelta: return {"step", "square_avg", "acc_delta"};
    case OptimizerKind::adamax: return {"step", "exp_avg", "exp_inf"};
    case OptimizerKind::nadam: return {"step", "mu_product", "exp_avg", "exp_avg_sq"};
    case OptimizerKind::rprop: return {"step", "prev", "step_size"};
    case OptimizerKind::asgd: return {"step", "eta", "mu", "ax"};
    case OptimizerKind::lion: return {"exp_avg"};
    case OptimizerKind::lamb: return {"exp_avg", "exp_avg_sq"};
    case OptimizerKind::adafactor:
      return tensors > 1 ? Keys{"step", "row_var", "col_var"} : Keys{"step", "variance"};
    case OptimizerKind::rmsprop:
      return plan.momentum > 0 ? Keys{"step", "square_avg", "momentum_buffer", "grad_avg"}
                               : Keys{"step", "square_avg", "grad_avg"};
    default: return {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  }
}

}  // namespace

std::vector<std::string> OptimizerStateNames::next(size_t tensors) {
  const size_t count = tensors + static_cast<size_t>(rule_of(plan_->kind).counters());
  const Keys keys = keys_of(*plan_, tensors);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = i < keys.size() ? keys[i] : "state";
    names.push_back(fmt::format("{}.{}", key, ++occurrences_[key]));
  }
  return names;
}

std::string broadcast_name(std::string_view name) { return fmt::format("broadcast.{}", name); }

SiteId broadcast_site(std::string_view name) { return site_id("horovod: " + broadcast_name(name)); }

std::vector<std::string> names_of_optimizer_states(const TrainingPlan& plan) {
  // Of the dictionary of options, and of the list of names of groups: their sizes, then themselves.
  std::set<std::string> names = {"dict.sz", "dict.t", "list.sz", "list.t"};
  for (const OptimizerPlan& optimizer : plan.optimizers) {
    OptimizerStateNames of_optimizer(optimizer);
    for (const ParameterPlace place : plan.network->parameters()) {
      const Shape& shape = plan.network->layers[place.layer].parameters[place.tensor].shape;
      if (optimizer.holds(place.layer)) {
        const std::vector<std::string> of_parameter =
            of_optimizer.next(rule_of(optimizer.kind).state(optimizer, shape).size());
        names.insert(of_parameter.begin(), of_parameter.end());
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace lockstep
