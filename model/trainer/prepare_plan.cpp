// Precision and optimizer.
#include <fmt/core.h>

#include "model/trainer/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void set_precision(Preparation& preparation, const Given<std::string>& precision,
                   TrainingPlan& plan) {
  const std::string name = value_or(precision, std::string("32-true"));
  if (name == "32-true" || name == "32") {
    return;
  }
  if (name == "64-true" || name == "64") {
    plan.parameter_dtype = plan.activation_dtype = DType::fp64;
  } else if (name == "bf16-true") {
    plan.parameter_dtype = plan.activation_dtype = DType::bf16;
  } else if (name == "16-true") {
    plan.parameter_dtype = plan.activation_dtype = DType::fp16;
  } else if (name == "bf16-mixed" || name == "bf16") {
    plan.activation_dtype = DType::bf16;
  } else {
    add_problem(preparation, Kind::unsupported, precision->place,
                fmt::format("the precision `{}` is not modelled yet", name), "use bf16-mixed");
  }
}

void set_number(Preparation& preparation, const ObjectArgument& argument, double& number) {
  const std::optional<double> given = argument.value.number();
  if (!given) {
    add_problem(preparation, Kind::invalid, argument.place,
                fmt::format("`{}` is no number", argument.name));
    return;
  }
  number = *given;
}

void set_betas(Preparation& preparation, const ObjectArgument& argument, OptimizerPlan& plan) {
  const PlainValue::List* list = argument.value.get_if<PlainValue::List>();
  if (list == nullptr || list->size() != 2 || !(*list)[0].number() || !(*list)[1].number()) {
    add_problem(preparation, Kind::invalid, argument.place, "`betas` are two numbers");
    return;
  }
  plan.beta1 = *(*list)[0].number();
  plan.beta2 = *(*list)[1].number();
}

void set_optimizer(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  if (optimizer.name == "Adam" || optimizer.name == "AdamW") {
    plan.kind = optimizer.name == "Adam" ? OptimizerKind::adam : OptimizerKind::adamw;
    plan.lr = 1e-3;
    plan.weight_decay = optimizer.name == "Adam" ? 0 : 0.01;
  } else if (optimizer.name == "SGD") {
    plan.lr = 1e-3;
  } else {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("the optimizer {} is not modelled yet", optimizer.name));
    return;
  }
  const bool sgd = plan.kind == OptimizerKind::sgd;
  for (const ObjectArgument& argument : optimizer.arguments) {
    if (argument.name == "lr" || argument.name.empty()) {
      set_number(preparation, argument, plan.lr);
    } else if (argument.name == "momentum" && sgd) {
      set_number(preparation, argument, plan.momentum);
    } else if (argument.name == "weight_decay") {
      set_number(preparation, argument, plan.weight_decay);
    } else if (argument.name == "eps" && !sgd) {
      set_number(preparation, argument, plan.eps);
    } else if (argument.name == "betas" && !sgd) {
      set_betas(preparation, argument, plan);
    } else if (argument.name != "name") {
      add_problem(preparation, Kind::unsupported, argument.place,
                  fmt::format("the argument `{}` of {} is not modelled yet", argument.name,
                              optimizer.name));
    }
  }
}

}  // namespace

void prepare_plan(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  TrainingPlan& plan = program.plan;
  plan.seed = program.settings.seed;
  plan.barrier_is_all_reduce = !program.settings.gloo;
  set_precision(preparation, scenario.trainer->precision, plan);
  set_optimizer(preparation, scenario.optimizers.front(), plan.optimizer);
  if (scenario.optimizers.size() > 1) {
    add_problem(preparation, Kind::unsupported, scenario.optimizers[1].place,
                "several optimizers are not modelled yet");
  }
  for (const Object& scheduler : scenario.schedulers) {
    add_problem(preparation, Kind::unsupported, scheduler.place,
                fmt::format("the scheduler {} is not modelled yet", scheduler.name));
  }
}

}  // namespace lockstep
