// Combinations that the framework refuses, or takes and ignores.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/cluster/presets.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void check_clipping(Preparation& preparation, const TrainerSpec& trainer) {
  const std::string asked = value_or(trainer.gradient_clip_algorithm, std::string("norm"));
  if (asked != "norm" && asked != "value") {
    add_problem(preparation, Kind::refused, trainer.gradient_clip_algorithm->place,
                fmt::format("`gradient_clip_algorithm` {} is invalid", asked),
                "write norm or value", refused_code);
    return;
  }
  if (!trainer.gradient_clip_val || trainer.gradient_clip_val->value <= 0) {
    return;
  }
  const SourcePlace& place = trainer.gradient_clip_val->place;
  const Placement& placement = preparation.placement;
  if (!placement.traits.clips_by_norm && asked == "norm") {
    add_problem(preparation, Kind::refused, place,
                fmt::format("clipping by norm through the Trainer is not supported with {}",
                            placement.strategy.name),
                "clip in configure_gradient_clipping with the module's clip_grad_norm_",
                refused_code);
  }
  if (!placement.traits.clips_by_value && asked == "value") {
    add_problem(preparation, Kind::refused, place,
                fmt::format("{} does not clip gradients by value", placement.strategy.name),
                "use gradient_clip_algorithm: norm", refused_code);
  }
}

// manual_backward asks first whether the module optimizes by hand (core/module.py, in 1.x
// core/lightning.py); what calls `loss.backward()` itself is asked nothing.
void check_backward(Preparation& preparation, const ProgramSpec& program) {
  const bool by_hand = !value_or(program.automatic_optimization, true);
  const Statement* wrong = nullptr;
  for_each_statement(program, [&](const Statement& statement) {
    const bool past_lightning =
        statement.through && statement.through->value == ForwardThrough::module;
    if (wrong == nullptr && statement.kind == StatementKind::backward &&
        past_lightning == by_hand) {
      wrong = &statement;
    }
  });
  if (wrong == nullptr) {
    return;
  }
  if (by_hand) {
    add_problem(preparation, Kind::unsupported, wrong->through->place,
                "`loss.backward()` past Lightning is not modelled under manual optimization",
                "leave `through` out: manual_backward then prepares the exchange of gradients");
    return;
  }
  add_problem(preparation, Kind::refused, wrong->place,
              "`backward` is manual_backward, which raises MisconfigurationException under "
              "automatic optimization: Lightning runs backward and step itself",
              "write automatic_optimization: false under `program`, or leave out `backward` and "
              "the statements that step",
              refused_code);
}

// trainer/configuration_validator.py, manual optimization; under dp Lightning does not look, and
// gradients get mixed up (lightning issues 4961 and 6348).
void check_manual(Preparation& preparation, const TrainerSpec& trainer) {
  const auto& program = preparation.scenario->program;
  if (program) {
    check_backward(preparation, *program);
  }
  if (!program || value_or(program->automatic_optimization, true)) {
    return;
  }
  const Placement& placement = preparation.placement;
  if (placement.traits.drives_all_devices() && placement.devices.size() > 1) {
    add_problem(preparation, Kind::refused, program->automatic_optimization->place,
                fmt::format("{} does not support manual optimization: training_step runs in a "
                            "thread for each replica, and all would step the same optimizer at "
                            "once",
                            placement.strategy.name),
                "use ddp", refused_code);
  }
  if (trainer.gradient_clip_val && trainer.gradient_clip_val->value > 0) {
    add_problem(preparation, Kind::refused, trainer.gradient_clip_val->place,
                "automatic gradient clipping is not supported for manual optimization",
                "clip in training_step before optimizer_step", refused_code);
  }
  if (trainer.accumulate_grad_batches && trainer.accumulate_grad_batches->value != 1) {
    add_problem(preparation, Kind::refused, trainer.accumulate_grad_batches->place,
                "automatic gradient accumulation is not supported for manual optimization",
                "step every so many batches in training_step", refused_code);
  }
  for (const Hook& hook : program->hooks) {
    if (hook.name == "optimizer_step" || hook.name == "optimizer_zero_grad" ||
        hook.name == "configure_gradient_clipping" || hook.name == "lr_scheduler_step" ||
        hook.name == "on_before_zero_grad") {
      add_problem(preparation, Kind::warning, hook.place,
                  fmt::format("under manual optimization Lightning does not call `{}`", hook.name),
                  "do it in training_step", ignored_code);
    }
  }
}

// ClosureResult divides the loss, and so does the engine's backward (_scale_loss_by_gas).
void note_accumulation(Preparation& preparation, const TrainerSpec& trainer) {
  const auto& program = preparation.scenario->program;
  if (!preparation.placement.traits.accumulates_itself ||
      value_or(trainer.accumulate_grad_batches, int64_t{1}) <= 1 ||
      (program && !value_or(program->automatic_optimization, true))) {
    return;
  }
  add_problem(
      preparation, Kind::note, trainer.accumulate_grad_batches->place,
      fmt::format("{} divides the loss by `accumulate_grad_batches` after Lightning has "
                  "done so: gradients are {} times smaller, which SGD and clipping feel "
                  "and Adam does not",
                  preparation.placement.strategy.name, trainer.accumulate_grad_batches->value));
}

void check_sync_batchnorm(Preparation& preparation, const TrainerSpec& trainer) {
  const StrategyTraits& traits = preparation.placement.traits;
  if (!value_or(trainer.sync_batchnorm, false)) {
    return;
  }
  const SourcePlace& place = trainer.sync_batchnorm->place;
  if (!traits.is_one_process()) {
    // Lightning's ddp.py and fsdp.py alone call LayerSync.apply.
    if (traits.statistics == StatisticsSharing::ignored) {
      add_problem(preparation, Kind::warning, place,
                  fmt::format("`sync_batchnorm` is ignored under {}: Lightning converts no layer, "
                              "and each rank has the statistics of its own batch",
                              preparation.placement.strategy.name),
                  "call torch.nn.SyncBatchNorm.convert_sync_batchnorm in the script, or use ddp",
                  ignored_code);
    }
    return;
  }
  if (traits.drives_all_devices()) {
    add_problem(preparation, Kind::warning, place,
                fmt::format("`sync_batchnorm` is ignored under {}: each replica has the statistics "
                            "of its own chunk",
                            preparation.placement.strategy.name),
                "use ddp", ignored_code);
  } else {
    add_problem(preparation, Kind::note, place,
                "`sync_batchnorm` has no effect here: there is one process");
  }
}

// A cluster has one kind of device, whatever the Trainer uses of it.
void check_accelerator(Preparation& preparation) {
  const auto& cluster = preparation.scenario->cluster;
  if (!preparation.placement.cpu || !cluster || !cluster->preset ||
      cluster->preset->place.line == 0) {
    return;
  }
  const std::optional<Cluster> preset = cluster_preset(cluster->preset->value);
  if (preset && preset->node.device.is_accelerator()) {
    add_problem(
        preparation, Kind::note, cluster->preset->place,
        fmt::format("the Trainer leaves the {}s of {} idle, and times are predicted as if they "
                    "computed",
                    word_for(preset->node.device.type), cluster->preset->value),
        "write cluster: {preset: cpu}");
  }
}

// PyTorch: a DataLoader of an IterableDataset takes no sampler.
void check_iterable(Preparation& preparation, const std::vector<LoaderSpec>& loaders) {
  for (const LoaderSpec& loader : loaders) {
    const bool iterable = value_or(loader.iterable, false);
    // strategies/tpu_spawn.py of 1.x and strategies/xla.py of 2.0.
    if (iterable && preparation.placement.device == DeviceType::tpu &&
        preparation.placement.lightning < Version{2, 1, 0}) {
      add_problem(preparation, Kind::refused, loader.iterable->place,
                  "TPUs do not currently support IterableDataset objects, the dataset must "
                  "implement `__len__`",
                  "give the data set a length, or use Lightning 2.1", refused_code);
    }
    if (iterable && loader.sampler && loader.sampler->value == SamplerKind::distributed) {
      add_problem(preparation, Kind::refused, loader.sampler->place,
                  "a DataLoader of an IterableDataset takes no DistributedSampler",
                  "let the data set give each rank its part (sampler: unrepeated)", refused_code);
    }
  }
}

// trainer/configuration_validator.py of 1.x: under dp it is DataParallel that moves batches.
void check_transfer_under_dp(Preparation& preparation) {
  if (!preparation.placement.traits.drives_all_devices() || !preparation.scenario->program) {
    return;
  }
  for (const Hook& hook : preparation.scenario->program->hooks) {
    if (hook.name == "transfer_batch_to_device" || hook.name.ends_with("_batch_transfer")) {
      add_problem(preparation, Kind::refused, hook.place,
                  fmt::format("overriding `{}` is not supported in DP mode", hook.name),
                  "use ddp, or do it in the data set", refused_code);
    }
  }
}

/// A hook that some versions alone call.
struct HookOfVersions {
  std::string_view name;
  Version from;
  Version until;
  Version ignored_from;  ///< in between Lightning refuses it
  std::string_view instead;
};

constexpr Version every_version{};
constexpr Version no_version{1000, 0, 0};

// trainer/configuration_validator.py and callbacks of 1.6, 1.9, 2.1 and 2.6.
constexpr auto hooks_of_versions = std::to_array<HookOfVersions>({
    {"training_epoch_end",
     every_version,
     {2, 0, 0},
     no_version,
     "use `on_train_epoch_end`, and keep outputs in a list: append: {self.outputs: x}"},
    {"validation_epoch_end",
     every_version,
     {2, 0, 0},
     no_version,
     "use `on_validation_epoch_end`, and keep outputs in a list: append: {self.outputs: x}"},
    {"test_epoch_end",
     every_version,
     {2, 0, 0},
     no_version,
     "use `on_test_epoch_end`, and keep outputs in a list: append: {self.outputs: x}"},
    {"training_step_end", every_version, {2, 0, 0}, {2, 0, 0}, "do it at the end of the step"},
    {"validation_step_end", every_version, {2, 0, 0}, {2, 0, 0}, "do it at the end of the step"},
    {"test_step_end", every_version, {2, 0, 0}, {2, 0, 0}, "do it at the end of the step"},
    {"on_pretrain_routine_start", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_fit_start`"},
    {"on_pretrain_routine_end", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_fit_start`"},
    {"on_epoch_start", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_train_epoch_start`"},
    {"on_epoch_end", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_train_epoch_end`"},
    {"on_batch_start", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_train_batch_start`"},
    {"on_batch_end", every_version, {1, 8, 0}, {2, 0, 0}, "use `on_train_batch_end`"},
    {"on_validation_model_zero_grad",
     {2, 1, 0},
     no_version,
     every_version,
     "Lightning then empties gradients before every validation"},
    {"configure_model", {2, 1, 0}, no_version, every_version, "use `configure_sharded_model`"},
});

void check_hooks(Preparation& preparation) {
  if (!preparation.scenario->program) {
    return;
  }
  const Version version = preparation.placement.lightning;
  const Hook* const older = preparation.scenario->program->find("configure_sharded_model");
  if (older != nullptr && version >= Version{2, 1, 0} &&
      preparation.scenario->program->find("configure_model") != nullptr) {
    add_problem(preparation, Kind::refused, older->place,
                "both `configure_model` and `configure_sharded_model` are overridden",
                "keep configure_model", refused_code);
  }
  for (const Hook& hook : preparation.scenario->program->hooks) {
    const auto* const known =
        std::ranges::find(hooks_of_versions, hook.name, &HookOfVersions::name);
    if (known == hooks_of_versions.end() || (version >= known->from && version < known->until)) {
      continue;
    }
    if (version < known->ignored_from) {
      add_problem(preparation, Kind::refused, hook.place,
                  fmt::format("support for `{}` has been removed in Lightning {}.{}", hook.name,
                              known->until.major, known->until.minor),
                  std::string(known->instead), refused_code);
    } else {
      add_problem(
          preparation, Kind::warning, hook.place,
          fmt::format("Lightning {}.{} never calls `{}`", version.major, version.minor, hook.name),
          std::string(known->instead), ignored_code);
    }
  }
}

// Arguments of the Trainer that came with 1.5 (its changelog); those of other versions are checked
// where they are read.
void check_arguments_of_1_5(Preparation& preparation, const TrainerSpec& trainer) {
  const auto check = [&](const auto& given, const char* name, const char* instead) {
    if (given && preparation.placement.lightning < Version{1, 5, 0}) {
      add_problem(preparation, Kind::refused, given->place,
                  fmt::format("the argument `{}` came with Lightning 1.5", name), instead,
                  refused_code);
    }
  };
  check(trainer.enable_checkpointing, "enable_checkpointing", "use checkpoint_callback there");
  check(trainer.enable_progress_bar, "enable_progress_bar", "use progress_bar_refresh_rate there");
  check(trainer.enable_model_summary, "enable_model_summary", "use weights_summary there");
}

}  // namespace

std::optional<Version> newest_with_hooks(const Scenario& scenario) {
  std::optional<Version> newest;
  for (const HookOfVersions& known : hooks_of_versions) {
    if (scenario.program && scenario.program->find(known.name) != nullptr &&
        known.until != no_version) {
      const Version last = known.until == Version{2, 0, 0}
                               ? Version{1, 9, 0}
                               : Version{known.until.major, known.until.minor - 1, 0};
      newest = std::min(newest.value_or(last), last);
    }
  }
  return newest;
}

void check_combinations(Preparation& preparation) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  check_arguments_of_1_5(preparation, trainer);
  check_clipping(preparation, trainer);
  check_hooks(preparation);
  check_transfer_under_dp(preparation);
  check_manual(preparation, trainer);
  note_accumulation(preparation, trainer);
  check_sync_batchnorm(preparation, trainer);
  check_accelerator(preparation);
  const DataSpec& data = *preparation.scenario->data;
  for (const auto* loaders : {&data.train, &data.val, &data.test, &data.predict}) {
    check_iterable(preparation, *loaders);
  }
}

}  // namespace lockstep
