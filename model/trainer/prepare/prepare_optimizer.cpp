#include "model/trainer/prepare/prepare_optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/spelling.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/trainer/prepare/wrapped_optimizer.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void set_pair(Preparation& preparation, const ObjectArgument& argument, double& first,
              double& second) {
  const PlainValue::List* list = argument.value.get_if<PlainValue::List>();
  if (list == nullptr || list->size() != 2 || !((*list)[0].number() || (*list)[0].is_null()) ||
      !(*list)[1].number()) {
    add_problem(preparation, Kind::invalid, argument.place,
                fmt::format("`{}` are two numbers", argument.name),
                fmt::format("write {}: [0.9, 0.99]", argument.name));
    return;
  }
  first = (*list)[0].is_null() ? first : *(*list)[0].number();  // Adafactor's eps: [null, 1e-3]
  second = *(*list)[1].number();
}

void set_argument(Preparation& preparation, const OptimizerArgument& row,
                  const ObjectArgument& argument, OptimizerPlan& plan) {
  if (row.second != nullptr) {
    set_pair(preparation, argument, plan.*row.number, plan.*row.second);
  } else if (row.number != nullptr) {
    set_number(preparation, argument, plan.*row.number);
  } else if (const bool* truth = argument.value.get_if<bool>()) {
    plan.*row.truth = *truth;
  }
}

using Names = std::vector<std::string_view>;

// torch.optim. The loader knows them as well, but not that the value of an argument is one.
const Names optimizers_of_torch = {"SGD",    "Adam",  "AdamW", "Adagrad",   "Adadelta",
                                   "Adamax", "NAdam", "RAdam", "RMSprop",   "Adafactor",
                                   "ASGD",   "LBFGS", "Rprop", "SparseAdam"};

const OptimizerRule* find_rule(std::string_view name) {
  for (const OptimizerRule* const rule : optimizer_rules()) {
    if (rule->name() == name) {
      return rule;
    }
  }
  return nullptr;
}

Names arguments_of_class(const OptimizerRule& rule) {
  Names names(rule.other_arguments().begin(), rule.other_arguments().end());
  for (const OptimizerArgument& argument : rule.arguments()) {
    names.push_back(argument.name);
  }
  return names;
}

// Whether it can hold the class that it is given.
bool holds_optimizer(Preparation& preparation, const Object& optimizer, const std::string& held) {
  const SourcePlace& place = optimizer.find("optimizer_class")->place;
  if (held == optimizer.name) {
    add_problem(preparation, Kind::invalid, place, "ZeroRedundancyOptimizer cannot hold itself",
                "name the optimizer whose state it divides, as in optimizer_class: Adam");
    return false;
  }
  if (std::ranges::count(optimizers_of_torch, held) == 0 && find_rule(held) == nullptr) {
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
  const PlainValue* const group = optimizer.find("process_group");
  if (group != nullptr && !group->is_null()) {
    add_problem(preparation, Kind::unsupported, group->place,
                "`process_group` of ZeroRedundancyOptimizer is modelled for the group of all ranks "
                "alone",
                "leave it out, or write null");
  }
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
         argument == "process_group" || argument == "adamw_mode" || argument == "adam_w_mode" ||
         argument == "set_grad_none" || argument == "fp32_optimizer_states" ||
         speaks_of_scaling(argument);
}

std::string supported_optimizers() {
  std::string names;
  for (const OptimizerRule* const rule : optimizer_rules()) {
    names += fmt::format("{}{}", names.empty() ? "supported: " : ", ", rule->name());
  }
  return names + ", FusedAdam, DeepSpeedCPUAdam, FusedLion, DeepSpeedCPULion, DeepSpeedCPUAdagrad";
}

/// All but what zero_grad does, which depends on the version.
void set_defaults(OptimizerKind kind, OptimizerPlan& plan) {
  const bool set_to_none = plan.set_to_none;
  static_cast<OptimizerSettings&>(plan) = rule_of(kind).defaults();
  plan.set_to_none = set_to_none;
}

/// deepspeed/ops/adam: AdamW without decay, unless the argument `mode` says Adam.
void set_adam_of_mode(const Object& optimizer, const char* mode, OptimizerPlan& plan) {
  const PlainValue* value = optimizer.find(mode);
  const bool* given = value == nullptr ? nullptr : value->get_if<bool>();
  set_defaults(given == nullptr || *given ? OptimizerKind::adamw : OptimizerKind::adam, plan);
  plan.weight_decay = 0;
}

void refuse_on_cpu(Preparation& preparation, const Object& optimizer, const char* instead) {
  if (preparation.placement.cpu || preparation.placement.device != DeviceType::cuda) {
    const std::string_view device =
        preparation.placement.cpu ? "the CPU" : torch_name_of(preparation.placement.device);
    add_problem(preparation, Kind::refused, optimizer.place,
                fmt::format("RuntimeError: {} is a CUDA kernel, and the Trainer runs on {}",
                            optimizer.name, device),
                fmt::format("use {}", instead), refused_code);
  }
}

void refuse_without_host(Preparation& preparation, const Object& optimizer, const char* instead) {
  if (!preparation.placement.traits.has_host_optimizer) {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("{} under {} is not modelled", optimizer.name,
                            preparation.placement.strategy.name),
                fmt::format("use deepspeed with offload_optimizer, or {}", instead));
  }
}

/// deepspeed/ops/lion: other defaults than those of lion-pytorch.
void set_deepspeed_lion(OptimizerPlan& plan) {
  set_defaults(OptimizerKind::lion, plan);
  plan.lr = 1e-3;
  plan.beta2 = 0.999;
}

void set_fused_adam(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  set_adam_of_mode(optimizer, "adam_w_mode", plan);
  plan.is_fused = true;
  refuse_on_cpu(preparation, optimizer, "AdamW");
}

void set_deepspeed_adam(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  set_adam_of_mode(optimizer, "adamw_mode", plan);
  plan.is_on_host = true;
  refuse_without_host(preparation, optimizer, "AdamW");
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

bool of_deepspeed(const OptimizerPlan& plan) { return plan.is_fused || plan.is_on_host; }

// Their kernels have no largest second moment.
void refuse_amsgrad(Preparation& preparation, const ObjectArgument& argument,
                    const std::string& name) {
  const bool* const given = argument.value.get_if<bool>();
  if (given != nullptr && *given) {
    add_problem(preparation, Kind::unsupported, argument.place,
                fmt::format("`amsgrad` of {} is not modelled", name), "use Adam or AdamW");
  }
}

void set_arguments(Preparation& preparation, const Object& optimizer, const std::string& name,
                   OptimizerPlan& plan) {
  const OptimizerRule& rule = rule_of(plan.kind);
  for (const ObjectArgument& argument : optimizer.arguments) {
    const std::string called = argument.name.empty() ? "lr" : argument.name;
    const auto row = std::ranges::find(rule.arguments(), called, &OptimizerArgument::name);
    const bool* const set = argument.value.get_if<bool>();
    if (called == "bias_correction" && of_deepspeed(plan)) {
      plan.corrects_bias = set != nullptr && *set;  // null is None, which is false
      continue;
    }
    if (argument.value.is_null()) {
      continue;
    }
    if (called == "amsgrad" && plan.kind == OptimizerKind::adagrad) {
      continue;  // DeepSpeedCPUAdagrad takes it, and does nothing with it
    }
    if (called == "amsgrad" && of_deepspeed(plan)) {
      refuse_amsgrad(preparation, argument, name);
    } else if (row != rule.arguments().end()) {
      set_argument(preparation, *row, argument, plan);
    } else if (argument.name == "warmup_steps" && plan.kind == OptimizerKind::qadam) {
      set_warmup_steps(preparation, argument, plan);
    } else if (argument.name == "set_to_none" && set != nullptr) {
      plan.set_to_none = *set;
    } else if (is_read_elsewhere(argument.name)) {
      continue;
    } else if (const Names known = arguments_of_class(rule);
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

void set_number(Preparation& preparation, const ObjectArgument& argument, double& number) {
  const std::optional<double> given = argument.value.number();
  if (!given) {
    add_problem(preparation, Kind::invalid, argument.place,
                fmt::format("`{}` is not a number", argument.name));
    return;
  }
  number = *given;
}

bool speaks_of_scaling(std::string_view argument) {
  return argument == "scaling" || argument == "base_lr" || argument == "base_batch_size";
}

void prepare_optimizer(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan) {
  const std::string name = class_of(preparation, optimizer);
  const OptimizerRule* const named = find_rule(name);
  if (named != nullptr) {
    set_defaults(named->defaults().kind, plan);
  } else if (name == "DeepSpeedCPUAdam") {
    set_deepspeed_adam(preparation, optimizer, plan);
  } else if (name == "FusedAdam") {
    set_fused_adam(preparation, optimizer, plan);
  } else if (name == "DeepSpeedCPUAdagrad") {
    set_defaults(OptimizerKind::adagrad, plan);
    plan.is_on_host = true;
    refuse_without_host(preparation, optimizer,
                        "Adagrad (DeepSpeed takes its own only with zero_force_ds_cpu_optimizer: "
                        "false)");
  } else if (name == "FusedLion" || name == "DeepSpeedCPULion") {
    set_deepspeed_lion(plan);
    plan.is_fused = name == "FusedLion";
    plan.is_on_host = !plan.is_fused;
    if (plan.is_fused) {
      refuse_on_cpu(preparation, optimizer, "Lion");
    } else {
      refuse_without_host(preparation, optimizer, "Lion");
    }
  } else {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("the optimizer {} is not modelled yet", name), supported_optimizers());
    return;
  }
  set_sharding(preparation, optimizer, plan);
  set_arguments(preparation, optimizer, name, plan);
  if (!rule_of(plan.kind).is_elementwise() && !preparation.placement.traits.takes_tensor_norms) {
    add_problem(preparation, Kind::unsupported, optimizer.place,
                fmt::format("{} under {} is not modelled: it takes norms of whole tensors, and "
                            "what a rank updates there need not be one",
                            name, preparation.placement.strategy.name),
                "use ddp, or AdamW");
  }
}

}  // namespace lockstep
