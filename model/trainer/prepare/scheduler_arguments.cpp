#include "model/trainer/prepare/scheduler_arguments.hpp"

#include <fmt/format.h>

#include "model/expression/evaluation_error.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/trainer/prepare/object_arguments.hpp"
#include "model/trainer/prepare/wrapped_optimizer.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void refuse(Preparation& preparation, const Object& object, std::string_view argument,
            const std::string& reason, const std::string& remedy) {
  const PlainValue* const value = object.find(argument);
  const bool is_written = value != nullptr && value->place.line > 0;
  add_problem(preparation, Kind::refused, is_written ? value->place : object.place,
              fmt::format("{}: {}", object.name, reason), remedy, refused_code);
}

void require(Preparation& preparation, const Object& object, std::string_view argument) {
  if (ObjectArguments(object).find(argument) == nullptr) {
    refuse(preparation, object, argument,
           fmt::format("TypeError: __init__() missing a required argument: '{}'", argument),
           fmt::format("write {}: ..", argument));
  }
}

void read_one_cycle(const ObjectArguments& arguments, CycleSettings& of) {
  of.total_steps = arguments.integer("total_steps", 0);
  if (of.total_steps == 0) {
    of.total_steps = arguments.integer("epochs", 0) * arguments.integer("steps_per_epoch", 0);
  }
  of.first_part = arguments.number("pct_start", of.first_part);
  of.is_linear = arguments.text("anneal_strategy", "cos") == "linear";
  of.first_divisor = arguments.number("div_factor", of.first_divisor);
  of.last_divisor = arguments.number("final_div_factor", of.last_divisor);
  of.has_three_phases = arguments.boolean("three_phase", false);
}

void read_cyclic(Preparation& preparation, const Object& scheduler, CycleSettings& of) {
  const ObjectArguments arguments(scheduler);
  require(preparation, scheduler, "base_lr");
  of.low = arguments.number("base_lr", 0);
  of.steps_up = arguments.number("step_size_up", of.steps_up);
  of.steps_down = arguments.number("step_size_down", of.steps_up);
  of.gamma = arguments.number("gamma", of.gamma);
  const std::string mode = arguments.text("mode", "triangular");
  of.mode = mode == "triangular2" ? CycleSettings::Mode::triangular2
            : mode == "exp_range" ? CycleSettings::Mode::exp_range
                                  : CycleSettings::Mode::triangular;
  if (arguments.find("scale_fn") != nullptr) {
    add_problem(preparation, Kind::unsupported, arguments.find("scale_fn")->place,
                "`scale_fn` of CyclicLR is not modelled", "use a `mode`, or LambdaLR");
  }
  // step_ratio divides by the sum, and x by it; x - 1 is never divided by 0, because x <= 1.
  if (!(of.steps_up > 0) || !(of.steps_down >= 0)) {
    refuse(preparation, scheduler, of.steps_up > 0 ? "step_size_down" : "step_size_up",
           "ZeroDivisionError: float division by zero: a cycle goes up in `step_size_up` steps",
           "write a step_size_up above 0, and a step_size_down of at least 0");
  }
}

int64_t required_integer(Preparation& preparation, const Object& scheduler,
                         std::string_view argument) {
  require(preparation, scheduler, argument);
  return ObjectArguments(scheduler).integer(argument, 0);
}

/// torch asks `optimizer.defaults`, which ZeroRedundancyOptimizer fills with what it was given.
bool can_cycle_momentum(const Object& optimizer, const OptimizerPlan& plan) {
  if (!has_momentum(plan)) {
    return false;
  }
  if (wrapped_optimizer(optimizer)) {
    return optimizer.find(has_betas(plan) ? "betas" : "momentum") != nullptr;
  }
  return true;
}

bool cycles_momentum(const SchedulerSettings& settings) {
  return (settings.kind == SchedulerKind::one_cycle_lr || settings.kind == SchedulerKind::cyclic) &&
         settings.of_cycle.cycles_momentum;
}

}  // namespace

CycleSettings cycle_settings_of(Preparation& preparation, const Object& scheduler) {
  const ObjectArguments arguments(scheduler);
  CycleSettings of;
  const bool is_one = scheduler.name == "OneCycleLR";
  require(preparation, scheduler, "max_lr");
  of.high = arguments.number("max_lr", 0);
  of.cycles_momentum = arguments.boolean("cycle_momentum", true);
  of.low_momentum = arguments.number("base_momentum", is_one ? 0.85 : 0.8);
  of.high_momentum = arguments.number("max_momentum", is_one ? 0.95 : 0.9);
  if (is_one) {
    read_one_cycle(arguments, of);
  } else {
    read_cyclic(preparation, scheduler, of);
  }
  return of;
}

RateFactor rate_factor_of(Preparation& preparation, const Object& scheduler) {
  using Form = RateFactor::Form;
  const ObjectArguments arguments(scheduler);
  RateFactor factor;
  if (scheduler.name.starts_with("get_")) {
    factor.form = scheduler.name.starts_with("get_constant") ? Form::constant
                  : scheduler.name.starts_with("get_linear") ? Form::linear
                  : scheduler.name.starts_with("get_cosine") ? Form::cosine
                                                             : Form::inverse_root;
    factor.warmup = required_integer(preparation, scheduler, "num_warmup_steps");
    if (factor.form == Form::linear || factor.form == Form::cosine) {
      factor.total = required_integer(preparation, scheduler, "num_training_steps");
    }
    factor.cycles = arguments.number("num_cycles", factor.cycles);
    factor.time_scale = arguments.integer("timescale", factor.warmup == 0 ? 10'000 : factor.warmup);
    return factor;
  }
  require(preparation, scheduler, "lr_lambda");
  const PlainValue* const given = scheduler.find("lr_lambda");
  const auto* const expression = given == nullptr ? nullptr : given->get_if<Expression>();
  if (expression == nullptr) {
    factor.expression = Expression::constant(Value(1));
    return factor;
  }
  factor.expression = *expression;
  try {
    factor.at(0);  // what its constructor asks for
  } catch (const EvaluationError& error) {
    add_problem(preparation, Kind::refused, error.place(),
                fmt::format("{}: {}", scheduler.name, error.message()), error.remedy(),
                refused_code);
    factor.expression = Expression::constant(Value(1));
  }
  return factor;
}

std::vector<Object> held_schedulers(const Object& scheduler) {
  std::vector<Object> held;
  const PlainValue* const value = scheduler.find("schedulers");
  const auto* const list = value == nullptr ? nullptr : value->get_if<PlainValue::List>();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (auto inner = as_object((*list)[i])) {
      held.push_back(std::move(*inner));
    }
  }
  return held;
}

void check_held(Preparation& preparation, const Object& scheduler,
                const SchedulerSettings& settings) {
  const std::vector<Object> held = held_schedulers(scheduler);
  if (held.empty()) {
    refuse(preparation, scheduler, "schedulers",
           fmt::format("ValueError: {} expects at least one scheduler{}, but got no scheduler.",
                       scheduler.name,
                       settings.kind == SchedulerKind::chained ? " to be chained" : ""),
           "write schedulers: [{LinearLR: {..}}, ..]");
  }
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].name == "ReduceLROnPlateau") {
      add_problem(preparation, Kind::refused, held[i].place,
                  fmt::format("{}: ValueError: does not support `ReduceLROnPlateau` scheduler as "
                              "it requires additional kwargs to be specified when calling `step`, "
                              "but got one at index {} in the given schedulers sequence.",
                              scheduler.name, i),
                  "make it a scheduler of its own: lr_scheduler takes a list", refused_code);
    }
  }
  for (const SchedulerSettings& one : settings.schedulers) {
    if (one.counts_iterations()) {
      refuse(preparation, scheduler, "schedulers",
             fmt::format("AttributeError: '{}' object has no attribute '_initial_step'", one.name),
             "put schedulers of torch into it");
    }
  }
  if (settings.kind == SchedulerKind::sequential && settings.milestones.size() + 1 != held.size() &&
      !held.empty()) {
    refuse(preparation, scheduler, "milestones",
           fmt::format("ValueError: Sequential Schedulers expects number of schedulers provided to "
                       "be one more than the number of milestone points, but got number of "
                       "schedulers {} and the number of milestones to be equal to {}",
                       held.size(), settings.milestones.size()),
           fmt::format("write {} milestones, in rising order", held.size() - 1));
  }
}

void take_cycled_momentum(Preparation& preparation, const Object& scheduler,
                          const SchedulerSettings& settings, TrainingProgram& program) {
  const std::vector<Object> held = held_schedulers(scheduler);
  for (size_t i = 0; i < settings.schedulers.size() && i < held.size(); ++i) {
    SchedulerSettings inner = settings.schedulers[i];
    inner.optimizer = settings.optimizer;
    take_cycled_momentum(preparation, held[i], inner, program);
  }
  if (!cycles_momentum(settings)) {
    return;
  }
  OptimizerPlan& plan = program.plan.optimizers[settings.optimizer];
  if (!can_cycle_momentum(preparation.scenario->optimizers[settings.optimizer], plan)) {
    refuse(preparation, scheduler, "cycle_momentum",
           "ValueError: optimizer must support momentum or beta1 with `cycle_momentum` option "
           "enabled",
           "write cycle_momentum: false");
    return;
  }
  set_first_momentum(plan, settings.of_cycle.high_momentum);
}

}  // namespace lockstep
