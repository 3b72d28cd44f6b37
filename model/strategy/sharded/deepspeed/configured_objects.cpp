#include "model/strategy/sharded/deepspeed/configured_objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/spelling.hpp"
#include "model/strategy/sharded/deepspeed/configuration_section.hpp"

namespace lockstep {

namespace {

const std::vector<ParameterRow> of_warmup = {{"warmup_min_lr"},
                                             {"warmup_max_lr"},
                                             {"warmup_num_steps"},
                                             {"warmup_type", ParameterType::text, true},
                                             {"last_batch_iteration"}};

std::vector<ParameterRow> with_total(std::vector<ParameterRow> rows) {
  rows.insert(rows.begin(), {"total_num_steps"});
  return rows;
}

const std::vector<SectionClass> own_schedulers = {
    {"WarmupLR", of_warmup},
    {"WarmupDecayLR", with_total(of_warmup), {"total_num_steps"}},
    {"WarmupCosineLR",
     {{"total_num_steps"},
      {"warmup_min_ratio"},
      {"warmup_num_steps"},
      {"cos_min_ratio"},
      {"warmup_type", ParameterType::text},
      {"last_batch_iteration"}},
     {"total_num_steps"}},
    {"OneCycle",
     {{"cycle_min_lr"},
      {"cycle_max_lr"},
      {"decay_lr_rate"},
      {"cycle_first_step_size"},
      {"cycle_second_step_size", ParameterType::number, true},
      {"cycle_first_stair_count"},
      {"cycle_second_stair_count", ParameterType::number, true},
      {"decay_step_size"},
      truth_row("cycle_momentum"),
      {"cycle_min_mom"},
      {"cycle_max_mom"},
      {"decay_mom_rate"},
      {"last_batch_iteration"}},
     {"cycle_min_lr", "cycle_max_lr"}},
    {"LRRangeTest",
     {{"lr_range_test_min_lr"},
      {"lr_range_test_step_size"},
      {"lr_range_test_step_rate"},
      truth_row("lr_range_test_staircase"),
      {"last_batch_iteration"}}}};

// Of torch where DeepSpeed has none of the name. ZeRO's optimizer is no torch.optim.Optimizer.
ConfiguredObject scheduler_of(const StrategyArguments& arguments, const Section& section) {
  const std::string type = section.type();
  if (!section.has_parameters()) {
    throw RefusedArgument(
        fmt::format("TypeError: {}: `scheduler` of the configuration has no `params`", type),
        section.name(), "write `params` with at least one parameter; an empty map counts as none");
  }
  const auto own = std::ranges::find(own_schedulers, type, &SectionClass::name);
  if (own != own_schedulers.end()) {
    if (section.number("last_batch_iteration", -1) != -1) {
      throw UnmodelledArgument("`last_batch_iteration` continues a training; a scenario begins one",
                               section.parameter_name("last_batch_iteration"));
    }
    return section.object(*own);
  }
  const ClassNames of_torch = {
      "StepLR",           "MultiStepLR",       "ConstantLR",
      "LinearLR",         "ExponentialLR",     "PolynomialLR",
      "OneCycleLR",       "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
      "CyclicLR",         "LambdaLR",          "ReduceLROnPlateau",
      "MultiplicativeLR", "SequentialLR",      "ChainedScheduler"};
  if (std::ranges::count(of_torch, type) == 0) {
    ClassNames known;
    std::ranges::transform(own_schedulers, std::back_inserter(known), &SectionClass::name);
    throw RefusedArgument(
        fmt::format("AssertionError: DeepSpeed does not recognize LR scheduler {}", type),
        section.type_name(), did_you_mean(type, known));
  }
  if (stage_of(arguments) > 0) {
    throw RefusedArgument(
        fmt::format("TypeError: {} is given the optimizer of ZeRO, which is not an Optimizer",
                    type),
        section.type_name(), "return it from configure_optimizers: lr_scheduler");
  }
  throw UnmodelledArgument(
      fmt::format("the scheduler {} of a DeepSpeed configuration is not modelled: DeepSpeed's own "
                  "are, and the scenario's `lr_scheduler`",
                  type),
      section.type_name());
}

// Without a name the engine has no optimizer: ZeRO 1 and 2 refuse to begin, the others to step.
void require_type(const StrategyArguments& arguments, const Section& section) {
  const int64_t stage = stage_of(arguments);
  if (!section.has_type()) {
    throw RefusedArgument(
        fmt::format("AssertionError: {}: `optimizer` of the configuration has no `type`",
                    stage != 1 && stage != 2
                        ? "must provide optimizer during init in order to use step"
                        : fmt::format("zero stage {} requires an optimizer", stage)),
        section.name(), "write {\"type\": .., \"params\": {..}}");
  }
}

}  // namespace

ConfiguredObjects deepspeed_objects(const StrategyArguments& arguments) {
  ConfiguredObjects objects;
  if (const Section optimizer(arguments, "optimizer"); optimizer.is_there()) {
    require_type(arguments, optimizer);
    optimizer.check_parameters();
    if (arguments.boolean("config.optimizer.legacy_fusion", false)) {
      throw UnmodelledArgument("`legacy_fusion` of a DeepSpeed configuration is not modelled",
                               "config.optimizer.legacy_fusion");
    }
    objects.optimizer = optimizer_of(arguments, optimizer);
  }
  if (const Section scheduler(arguments, "scheduler"); scheduler.has_type()) {
    scheduler.check_parameters();
    objects.scheduler = scheduler_of(arguments, scheduler);
  }
  return objects;
}

bool has_unnamed_scheduler(const StrategyArguments& arguments) {
  const Section scheduler(arguments, "scheduler");
  return scheduler.is_there() && !scheduler.has_type();
}

}  // namespace lockstep
