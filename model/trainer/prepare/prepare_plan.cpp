// Precision and optimizer.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/core/spelling.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/wrapped_optimizer.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void set_number(Preparation& preparation, const ObjectArgument& argument, double& number) {
  const std::optional<double> given = argument.value.number();
  if (!given) {
    add_problem(preparation, Kind::invalid, argument.place,
                fmt::format("`{}` is not a number", argument.name));
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

bool speaks_of_scaling(const std::string& argument) {
  return argument == "scaling" || argument == "base_lr" || argument == "base_batch_size";
}

// The script multiplies its rate by the devices, or by their square root; Lightning's Horovod
// strategy multiplies by the ranks whatever the script does (strategies/horovod.py, setup).
void scale_learning_rate(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  LearningRate& rate = preparation.learning_rate;
  const Placement& placement = preparation.placement;
  const auto devices =
      static_cast<double>(std::ssize(placement.devices)) * static_cast<double>(placement.nodes);
  rate.place = optimizer.place;
  rate.base_rate = plan.lr;
  for (const ObjectArgument& argument : optimizer.arguments) {
    rate.told = rate.told || speaks_of_scaling(argument.name);
    const std::string* text = argument.value.get_if<std::string>();
    if (argument.name == "base_lr") {
      set_number(preparation, argument, rate.base_rate);
    } else if (argument.name == "base_batch_size" && argument.value.get_if<int64_t>() != nullptr) {
      rate.base_batch_size = *argument.value.get_if<int64_t>();
    } else if (argument.name == "scaling" && text != nullptr && *text != "none") {
      rate.script_scales = true;
      if (*text == "linear" || *text == "sqrt") {
        plan.lr *= *text == "linear" ? devices : std::sqrt(devices);
      } else {
        add_problem(preparation, Kind::invalid, argument.place,
                    fmt::format("`scaling` cannot be {}", *text), "write linear, sqrt or none");
      }
    }
  }
  if (placement.strategy.scales_learning_rate) {
    rate.told = rate.framework_scales = true;
    plan.lr *= devices;
  }
  if (rate.base_rate <= 0 || rate.base_batch_size.value_or(1) < 1) {
    rate.told = false;
  }
}

using Names = std::vector<std::string_view>;

// torch.optim. The loader knows them as well, but not that the value of an argument is one.
const Names optimizers_of_torch = {"SGD",    "Adam",  "AdamW", "Adagrad",   "Adadelta",
                                   "Adamax", "NAdam", "RAdam", "RMSprop",   "Adafactor",
                                   "ASGD",   "LBFGS", "Rprop", "SparseAdam"};

Names arguments_of_torch(OptimizerKind kind) {
  return kind == OptimizerKind::sgd
             ? Names{"lr",       "momentum", "dampening",      "weight_decay", "nesterov",
                     "maximize", "foreach",  "differentiable", "fused"}
             : Names{"lr",       "betas",   "eps",        "weight_decay",   "amsgrad",
                     "maximize", "foreach", "capturable", "differentiable", "fused"};
}

// Whether it can hold the class that it is given.
bool holds_optimizer(Preparation& preparation, const Object& optimizer, const std::string& held) {
  const SourcePlace& place = optimizer.find("optimizer_class")->place;
  if (held == optimizer.name) {
    add_problem(preparation, Kind::invalid, place, "ZeroRedundancyOptimizer cannot hold itself",
                "name the optimizer whose state it divides, as in optimizer_class: Adam");
    return false;
  }
  if (std::ranges::count(optimizers_of_torch, held) == 0) {
    add_problem(preparation, Kind::invalid, place, fmt::format("there is no optimizer `{}`", held),
                did_you_mean(held, optimizers_of_torch));
    return false;
  }
  return true;
}

/// The optimizer class that updates: of ZeroRedundancyOptimizer, the one that it is given.
std::string class_of(Preparation& preparation, const Object& optimizer) {
  if (optimizer.name != "ZeroRedundancyOptimizer") {
    return optimizer.name;
  }
  const std::optional<Object> held = wrapped_optimizer(optimizer);
  if (held && !holds_optimizer(preparation, optimizer, held->name)) {
    return "SGD";
  }
  if (!held) {
    add_problem(preparation, Kind::invalid, optimizer.place,
                "ZeroRedundancyOptimizer needs its `optimizer_class`",
                "write {ZeroRedundancyOptimizer: {optimizer_class: Adam, lr: 1e-3}}");
    return "SGD";
  }
  return held->name;
}

// ZeroRedundancyOptimizer.step returns None then: the hook of hook_with_zero_step steps in its
// place, which is made of the DistributedDataParallel that Lightning wraps later. consume_result of
// lightning/pytorch/loops/optimization/closure.py raises in the first batch.
void refuse_overlap(Preparation& preparation, const Object& optimizer) {
  const auto& program = preparation.scenario->program;
  const bool is_automatic = !program || value_or(program->automatic_optimization, true);
  const SourcePlace& place = optimizer.find("overlap_with_ddp")->place;
  if (is_automatic) {
    add_problem(preparation, Kind::refused, place,
                "MisconfigurationException: The closure hasn't been executed: step() of "
                "ZeroRedundancyOptimizer does nothing with `overlap_with_ddp`, where torch's "
                "hook_with_zero_step updates, for which Lightning has no place",
                "leave `overlap_with_ddp` out", refused_code);
  } else {
    add_problem(preparation, Kind::unsupported, place,
                "`overlap_with_ddp` of ZeroRedundancyOptimizer under manual optimization is not "
                "modelled: step() does nothing then",
                "leave it out");
  }
}

/// What ZeroRedundancyOptimizer takes for itself.
void set_sharding(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  using Sharding = OptimizerPlan::Sharding;
  if (optimizer.name != "ZeroRedundancyOptimizer") {
    return;
  }
  const auto truth = [&](const char* name) {
    const PlainValue* value = optimizer.find(name);
    const bool* given = value == nullptr ? nullptr : value->get_if<bool>();
    return given != nullptr && *given;
  };
  plan.sharding = truth("parameters_as_bucket_view") ? Sharding::zero_redundancy_in_buckets
                                                     : Sharding::zero_redundancy;
  if (truth("overlap_with_ddp")) {
    refuse_overlap(preparation, optimizer);
  }
  if (!preparation.placement.traits.wraps_in_ddp) {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("ZeroRedundancyOptimizer under {} is not modelled",
                            preparation.placement.strategy.name),
                "use ddp, or the optimizer that it holds");
  }
}

bool is_read_elsewhere(const std::string& argument) {
  return argument == "name" || argument == "module" || argument == "optimizer_class" ||
         argument == "parameters_as_bucket_view" || argument == "overlap_with_ddp" ||
         argument == "adamw_mode" || argument == "adam_w_mode" || argument == "set_grad_none" ||
         argument == "fp32_optimizer_states" || speaks_of_scaling(argument);
}

bool of_deepspeed(const OptimizerPlan& plan) { return plan.is_fused || plan.is_on_host; }

bool is_default_of_deepspeed(const OptimizerPlan& plan, const ObjectArgument& argument) {
  const bool* const set = argument.value.get_if<bool>();
  return of_deepspeed(plan) && set != nullptr &&
         ((argument.name == "bias_correction" && *set) || (argument.name == "amsgrad" && !*set));
}

/// deepspeed/ops/adam: AdamW without decay, unless the argument `mode` says Adam.
void set_adam_of_mode(const Object& optimizer, const char* mode, OptimizerPlan& plan) {
  const PlainValue* value = optimizer.find(mode);
  const bool* given = value == nullptr ? nullptr : value->get_if<bool>();
  plan.kind = given == nullptr || *given ? OptimizerKind::adamw : OptimizerKind::adam;
  plan.lr = 1e-3;
}

void set_fused_adam(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  set_adam_of_mode(optimizer, "adam_w_mode", plan);
  plan.is_fused = true;
  if (preparation.placement.cpu) {
    add_problem(preparation, Kind::refused, optimizer.place,
                "RuntimeError: FusedAdam is a CUDA kernel, and the Trainer runs on the CPU",
                "use AdamW", refused_code);
  }
}

void set_deepspeed_adam(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  set_adam_of_mode(optimizer, "adamw_mode", plan);
  plan.is_on_host = true;
  if (!preparation.placement.traits.has_host_optimizer) {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("DeepSpeedCPUAdam under {} is not modelled",
                            preparation.placement.strategy.name),
                "use deepspeed with offload_optimizer, or AdamW");
  }
}

void set_warmup_steps(Preparation& preparation, const ObjectArgument& argument,
                      OptimizerPlan& plan) {
  plan.warmup_steps = argument.value.get_if<int64_t>() == nullptr
                          ? plan.warmup_steps
                          : *argument.value.get_if<int64_t>();
  if (plan.warmup_steps <= 0) {
    add_problem(
        preparation, Kind::refused, argument.place,
        fmt::format("QAdamOptimizer: warmup_steps must be above 0, not {}", plan.warmup_steps),
        "the second moment is made in the warm-up; leave the argument out for 100 steps",
        refused_code);
  }
}

void set_optimizer(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  const std::string name = class_of(preparation, optimizer);
  if (name == "Adam" || name == "AdamW") {
    plan.kind = name == "Adam" ? OptimizerKind::adam : OptimizerKind::adamw;
    plan.lr = 1e-3;
    plan.weight_decay = name == "Adam" ? 0 : 0.01;
  } else if (name == "DeepSpeedCPUAdam") {
    set_deepspeed_adam(preparation, optimizer, plan);
  } else if (name == "FusedAdam") {
    set_fused_adam(preparation, optimizer, plan);
  } else if (name == "QAdamOptimizer") {
    plan.kind = OptimizerKind::qadam;
    plan.lr = 1e-3;
    plan.warmup_steps = 100;
  } else if (name == "SGD") {
    plan.lr = 1e-3;
  } else {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("the optimizer {} is not modelled yet", name),
                "supported: SGD, Adam, AdamW, FusedAdam, DeepSpeedCPUAdam, QAdamOptimizer");
    return;
  }
  set_sharding(preparation, optimizer, plan);
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
    } else if (argument.name == "warmup_steps" && plan.kind == OptimizerKind::qadam) {
      set_warmup_steps(preparation, argument, plan);
    } else if (const bool* set = argument.value.get_if<bool>();
               argument.name == "set_to_none" && set != nullptr) {
      plan.set_to_none = *set;
    } else if (is_read_elsewhere(argument.name) || is_default_of_deepspeed(plan, argument)) {
      continue;
    } else if (argument.name == "bias_correction" && of_deepspeed(plan)) {
      add_problem(preparation, Kind::unsupported, argument.place,
                  fmt::format("{} without `bias_correction` is not modelled", optimizer.name),
                  "leave it out");
    } else if (const Names known = arguments_of_torch(plan.kind);
               std::ranges::count(known, argument.name) == 0) {
      // Only of ZeroRedundancyOptimizer, which hands on what it does not know.
      add_problem(
          preparation, Kind::refused, argument.place,
          fmt::format("{}.__init__() got an unexpected keyword argument '{}'", name, argument.name),
          did_you_mean(argument.name, known), refused_code);
    } else {
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
  plan.synchronises_without_fit = program.trainer.lightning >= Version{2, 0, 2};
  const Version& torch = program.settings.torch;
  plan.counts_use_under_no_sync = torch < Version{1, 9, 0} || torch >= Version{2, 4, 0};
  plan.barrier_is_all_reduce = !program.settings.gloo;
  plan.parameter_dtype = preparation.placement.precision.parameters;
  plan.activation_dtype = preparation.placement.precision.activations;
  plan.autocast_of_cuda = !preparation.placement.cpu;
  plan.optimizers.clear();
  for (const Object& optimizer : scenario.optimizers) {
    plan.optimizers.emplace_back().set_to_none = program.settings.torch >= Version{2, 0, 0};
    set_optimizer(preparation, optimizer, plan.optimizers.back());
    scale_learning_rate(preparation, optimizer, plan.optimizers.back());
  }
}

}  // namespace lockstep
