// The Trainer's arguments, with the defaults of trainer.py.
#include <fmt/core.h>

#include <algorithm>

#include "model/scenario/accumulation.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;
using Limit = TrainerSettings::Limit;

constexpr int64_t no_limit = TrainerSettings::no_limit;

int64_t limit_of(const Given<int64_t>& given, int64_t otherwise) {
  const int64_t value = value_or(given, otherwise);
  return value < 0 ? no_limit : value;
}

Limit read_limit(Preparation& preparation, const std::optional<PlainValue>& given,
                 const char* name) {
  Limit limit;
  if (!given || given->is_null()) {
    return limit;
  }
  limit.site = preparation.sites.add(site_at(given->place, fmt::format("trainer.{}", name)));
  const int64_t* batches = given->get_if<int64_t>();
  const double* part = given->get_if<double>();
  if (batches != nullptr && *batches >= 0) {
    limit.batches = *batches;
  } else if (part != nullptr && *part >= 0 && *part <= 1) {
    limit.part = *part;
  } else {
    add_problem(preparation, Kind::invalid, given->place,
                fmt::format("`{}` is a number of batches, or a part from 0.0 to 1.0", name));
  }
  return limit;
}

void apply_fast_dev_run(Preparation& preparation, const PlainValue& given,
                        TrainerSettings& settings) {
  const bool* on = given.get_if<bool>();
  const int64_t* count = given.get_if<int64_t>();
  const int64_t batches = on != nullptr ? (*on ? 1 : 0) : count != nullptr ? *count : -1;
  if (batches < 0) {
    add_problem(preparation, Kind::invalid, given.place, "`fast_dev_run` is a bool or a number");
  }
  if (batches <= 0) {
    return;
  }
  settings.limit_train.batches = settings.limit_validation.batches = batches;
  settings.limit_test.batches = settings.limit_predict.batches = batches;
  settings.fast_dev_run = true;
  settings.has_logger = false;  // a DummyLogger takes their place
  settings.num_sanity_val_steps = 0;
  settings.val_check_interval = {};
  settings.check_val_every_n_epoch = 1;
  settings.max_epochs = 1;
  settings.max_steps = batches;
}

// trainer/setup.py, _init_debugging_flags: it takes the place of both limits, whatever they are.
void apply_overfit_batches(Preparation& preparation, const TrainerSpec& trainer,
                           TrainerSettings& settings) {
  if (!overfits(trainer)) {
    return;
  }
  settings.limit_train = read_limit(preparation, trainer.overfit_batches, "overfit_batches");
  settings.limit_validation = settings.limit_train;
  for (const auto& [given, name] : {std::pair(&trainer.limit_train_batches, "limit_train_batches"),
                                    std::pair(&trainer.limit_val_batches, "limit_val_batches")}) {
    if (*given && !(*given)->is_null()) {
      add_problem(preparation, Kind::warning, (*given)->place,
                  fmt::format("`{}` is ignored: `overfit_batches` takes its place", name),
                  "leave one of them out", ignored_code);
    }
  }
}

// Something of the scenario may end a training that counts neither epochs nor steps.
bool may_end(const Scenario& scenario) {
  const bool stops = scenario.program &&
                     (find_statement(*scenario.program, StatementKind::should_stop) != nullptr ||
                      find_statement(*scenario.program, StatementKind::raise) != nullptr);
  return stops || !scenario.faults.empty() ||
         std::ranges::any_of(scenario.trainer->callbacks, [](const Object& callback) {
           return callback.name == "EarlyStopping";
         });
}

// data_connector.py, on_trainer_init: batches that are counted over epochs have no part of one.
void check_interval(Preparation& preparation, const TrainerSpec& trainer) {
  if (trainer.check_val_every_n_epoch && trainer.check_val_every_n_epoch->value == 0 &&
      trainer.val_check_interval && trainer.val_check_interval->get_if<double>() != nullptr) {
    add_problem(preparation, Kind::refused, trainer.val_check_interval->place,
                "`val_check_interval` should be an integer when `check_val_every_n_epoch=None`",
                "give a number of batches, or an integer `check_val_every_n_epoch`", refused_code);
  }
}

void check_end(Preparation& preparation, TrainerSettings& settings) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  if (settings.max_epochs != TrainerSettings::no_limit || may_end(*preparation.scenario)) {
    return;
  }
  settings.ends_by_steps_alone = settings.max_steps != TrainerSettings::no_limit;
  if (!settings.ends_by_steps_alone && settings.limit_train.allows_any()) {
    add_problem(
        preparation, Kind::invalid, trainer.max_epochs->place,
        "this training never ends: nothing limits its epochs or steps, and nothing stops it",
        "limit the simulation, for example by max_steps: 100");
  }
}

// From 0 down nothing is clipped (precision.py, clip_gradients).
GradientClipping clipping_of(const TrainerSpec& trainer) {
  GradientClipping clipping;
  clipping.limit = value_or(trainer.gradient_clip_val, 0.0);
  if (clipping.limit > 0) {
    clipping.algorithm = value_or(trainer.gradient_clip_algorithm, std::string("norm")) == "value"
                             ? GradientClipping::Algorithm::value
                             : GradientClipping::Algorithm::norm;
  }
  return clipping;
}

// trainer.py of 1.x makes a GradientAccumulationScheduler of a map; that of 2.0 takes an int alone.
void check_accumulation(Preparation& preparation, const TrainerSpec& trainer) {
  const Given<int64_t>& given = trainer.accumulate_grad_batches;
  if (!given || given->value != accumulates_by_epoch) {
    return;
  }
  const bool takes_map = preparation.placement.lightning < v2_0;
  if (takes_map && preparation.placement.strategy.is_horovod) {  // strategies/horovod.py, setup
    add_problem(preparation, Kind::refused, given->place,
                "MisconfigurationException: Horovod currently does not support different "
                "`accumulate_grad_batches` at different epochs.",
                "write one number: accumulate_grad_batches: 4", refused_code);
    return;
  }
  add_problem(preparation, Kind::unsupported, given->place,
              takes_map ? "`accumulate_grad_batches` by epoch is not modelled yet"
                        : "from Lightning 2.0 on `accumulate_grad_batches` takes an int; by epoch "
                          "it is the callback GradientAccumulationScheduler, which is not modelled "
                          "yet",
              "write one number, and compare the epochs as cases: "
              "{accumulate_grad_batches: 1, max_epochs: 2} and {accumulate_grad_batches: 4, ..}");
}

}  // namespace

void prepare_trainer_settings(Preparation& preparation, TrainerSettings& settings) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  settings.max_steps = limit_of(trainer.max_steps, -1);
  const bool ends_by_default = !trainer.max_epochs && settings.max_steps == no_limit;
  if (ends_by_default) {
    preparation.assumptions.push_back(
        "trainer: one epoch is simulated; Lightning would train 1000");
  }
  settings.max_epochs = limit_of(trainer.max_epochs, ends_by_default ? 1 : -1);
  settings.min_epochs = value_or(trainer.min_epochs, int64_t{0});
  settings.min_steps = value_or(trainer.min_steps, int64_t{0});
  settings.limit_train =
      read_limit(preparation, trainer.limit_train_batches, "limit_train_batches");
  settings.limit_validation =
      read_limit(preparation, trainer.limit_val_batches, "limit_val_batches");
  settings.limit_test = read_limit(preparation, trainer.limit_test_batches, "limit_test_batches");
  settings.limit_predict =
      read_limit(preparation, trainer.limit_predict_batches, "limit_predict_batches");
  settings.val_check_interval =
      read_limit(preparation, trainer.val_check_interval, "val_check_interval");
  if (settings.val_check_interval.batches == 0) {
    add_problem(preparation, Kind::invalid, trainer.val_check_interval->place,
                "`val_check_interval` is at least 1 batch");
    settings.val_check_interval = {};
  }
  settings.check_val_every_n_epoch = value_or(trainer.check_val_every_n_epoch, int64_t{1});
  settings.num_sanity_val_steps = limit_of(trainer.num_sanity_val_steps, 2);
  settings.log_every_n_steps =
      std::max<int64_t>(0, value_or(trainer.log_every_n_steps, int64_t{50}));
  const bool* const logs = trainer.logger ? trainer.logger->get_if<bool>() : nullptr;
  settings.has_logger = logs == nullptr || *logs;
  settings.accumulate_grad_batches =
      std::max<int64_t>(1, value_or(trainer.accumulate_grad_batches, int64_t{1}));
  check_accumulation(preparation, trainer);
  settings.reload_every_n_epochs =
      std::max<int64_t>(0, value_or(trainer.reload_dataloaders_every_n_epochs, int64_t{0}));
  settings.inject_sampler =
      value_or(trainer.use_distributed_sampler, value_or(trainer.replace_sampler_ddp, true));
  settings.gradient_clipping = clipping_of(trainer);
  if (trainer.fast_dev_run) {
    apply_fast_dev_run(preparation, *trainer.fast_dev_run, settings);
  }
  apply_overfit_batches(preparation, trainer, settings);
  check_interval(preparation, trainer);
  check_end(preparation, settings);
  check_trainer_arguments(preparation);
}

}  // namespace lockstep
