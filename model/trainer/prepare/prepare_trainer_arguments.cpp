// Arguments of the Trainer that are not modelled, and those that have no effect here.
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>

#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/trainer_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

std::string default_remedy(std::string_view text) {
  return fmt::format("leave it out, or write its default, {}", text);
}

void add_unsupported(Preparation& preparation, const SourcePlace& place, std::string_view name,
                     const std::string& remedy) {
  add_problem(preparation, Kind::unsupported, place,
              fmt::format("`{}` with this value is not modelled yet", name), remedy);
}

void add_note(Preparation& preparation, const SourcePlace& place, std::string_view name) {
  add_problem(preparation, Kind::note, place, fmt::format("`{}` has no effect here", name));
}

}  // namespace

bool is_zero(const PlainValue& value) {
  const bool* truth = value.get_if<bool>();
  return value.is_null() || (truth != nullptr ? !*truth : value.number() == 0.0);
}

bool overfits(const TrainerSpec& trainer) {
  return trainer.overfit_batches && !is_zero(*trainer.overfit_batches);
}

namespace {

// Apex casts the model itself, and with it the gradients that are reduced; in fp32 it does nothing.
void check_amp(Preparation& preparation, const TrainerSpec& trainer) {
  const bool apex = trainer.amp_backend && trainer.amp_backend->value == "apex";
  if (trainer.amp_backend && !apex && trainer.amp_backend->value != "native") {
    add_problem(preparation, Kind::refused, trainer.amp_backend->place,
                fmt::format("`amp_backend` {} is invalid", trainer.amp_backend->value),
                "write native or apex", refused_code);
  }
  const bool mixed = preparation.placement.precision.name.ends_with("-mixed");
  if (apex && mixed) {
    add_unsupported(preparation, trainer.amp_backend->place, "amp_backend",
                    "write amp_backend: native, which is modelled");
  } else if (apex) {
    add_note(preparation, trainer.amp_backend->place, "amp_backend");
  }
  // accelerator_connector.py of 1.5 to 1.9
  if (trainer.amp_level && !apex && preparation.placement.lightning >= Version{1, 5, 0}) {
    add_problem(preparation, Kind::refused, trainer.amp_level->place,
                fmt::format("You have asked for `amp_level='{}'` but it's only supported with "
                            "`amp_backend='apex'`",
                            trainer.amp_level->value),
                "leave it out", refused_code);
  } else if (trainer.amp_level) {
    add_note(preparation, trainer.amp_level->place, "amp_level");
  }
}

void name_unsupported(Preparation& preparation, const TrainerSpec& trainer) {
  if (trainer.max_time && !trainer.max_time->is_null()) {
    add_unsupported(preparation, trainer.max_time->place, "max_time", "limit max_steps instead");
  }
  // Before Lightning 2 validation may have taken the loader of the training.
  if (overfits(trainer) && preparation.placement.lightning < Version{2, 0, 0}) {
    add_unsupported(preparation, trainer.overfit_batches->place, "overfit_batches",
                    default_remedy("0.0"));
  }
  const auto& reload = trainer.reload_dataloaders_every_n_epochs;
  if (reload && reload->value != 0 && preparation.placement.lightning < Version{2, 0, 0}) {
    add_unsupported(preparation, reload->place, "reload_dataloaders_every_n_epochs",
                    default_remedy("0"));
  }
  const StrategyTraits& traits = preparation.placement.traits;
  if (trainer.sync_batchnorm && trainer.sync_batchnorm->value && !traits.is_one_process() &&
      traits.statistics == StatisticsSharing::not_modelled) {
    add_problem(preparation, Kind::unsupported, trainer.sync_batchnorm->place,
                fmt::format("`sync_batchnorm` under {} is not modelled yet",
                            preparation.placement.strategy.name),
                "leave it out, use a norm without statistics of the batch (GroupNorm, LayerNorm), "
                "or use ddp");
  }
  if (trainer.barebones && trainer.barebones->value) {
    add_unsupported(preparation, trainer.barebones->place, "barebones", default_remedy("false"));
  }
  for (const Object& plugin : trainer.plugins) {
    add_problem(preparation, Kind::unsupported, plugin.place,
                fmt::format("the plugin {} is not modelled yet", plugin.name), "leave it out");
  }
}

// `deterministic` sets a variable until 2.0, which Horovod reads (accelerator_connector.py).
bool turns_fusion_off(const Preparation& preparation) {
  return preparation.placement.lightning < v2_0 &&
         std::ranges::count(preparation.placement.strategy_variables, "HOROVOD_FUSION_THRESHOLD") !=
             0;
}

// Arguments that differ from the default and have no effect on what is modelled.
void name_without_effect(Preparation& preparation, const TrainerSpec& trainer) {
  const auto note_if = [&](const auto& given, bool differs, const char* name) {
    if (given && differs) {
      add_note(preparation, given->place, name);
    }
  };
  const auto is = [](const Given<bool>& given, bool value) {
    return given && given->value == value;
  };
  note_if(trainer.gradient_clip_algorithm,
          !trainer.gradient_clip_val &&
              value_or(trainer.gradient_clip_algorithm, std::string("norm")) != "norm",
          "gradient_clip_algorithm");
  note_if(
      trainer.deterministic,
      trainer.deterministic && !is_zero(*trainer.deterministic) && !turns_fusion_off(preparation),
      "deterministic");
  note_if(trainer.benchmark, is(trainer.benchmark, true), "benchmark");
  note_if(trainer.inference_mode, is(trainer.inference_mode, false), "inference_mode");
  note_if(trainer.detect_anomaly, is(trainer.detect_anomaly, true), "detect_anomaly");
  note_if(trainer.enable_progress_bar, is(trainer.enable_progress_bar, false),
          "enable_progress_bar");
  note_if(trainer.enable_model_summary, is(trainer.enable_model_summary, false),
          "enable_model_summary");
  note_if(trainer.default_root_dir, true, "default_root_dir");
  note_if(trainer.profiler, true, "profiler");
}

void check_others(Preparation& preparation, const TrainerSpec& trainer) {
  for (const ObjectArgument& given : trainer.others) {
    const TrainerArgument& argument = *find_trainer_argument(given.name);
    const Version& lightning = preparation.placement.lightning;
    if (lightning < argument.from || lightning >= argument.until) {
      const Version& edge = lightning < argument.from ? argument.from : argument.until;
      const std::string edge_text = fmt::format("{}.{}", edge.major, edge.minor);
      add_problem(
          preparation, Kind::refused, given.place,
          lightning < argument.from
              ? fmt::format("the argument `{}` came with Lightning {}", argument.name, edge_text)
              : fmt::format("Lightning {} removed the argument `{}`", edge_text, argument.name),
          argument.instead.empty() ? "leave it out" : fmt::format("use {}", argument.instead),
          refused_code);
      continue;
    }
    if (is_default(argument, given.value) ||
        argument.otherwise == TrainerArgument::Otherwise::read) {
      continue;
    }
    if (argument.otherwise == TrainerArgument::Otherwise::no_such_device) {
      add_problem(preparation, Kind::refused, given.place,
                  fmt::format("`{}` counts {}, and no cluster here has them", argument.name,
                              argument.meaning.substr(argument.meaning.find(' ') + 1)),
                  fmt::format("use {}", argument.instead), refused_code);
    } else if (argument.otherwise == TrainerArgument::Otherwise::not_modelled) {
      add_unsupported(preparation, given.place, argument.name,
                      fmt::format("use {}", argument.instead));
    } else {
      add_note(preparation, given.place, argument.name);
    }
  }
}

}  // namespace

void check_trainer_arguments(Preparation& preparation) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  check_amp(preparation, trainer);
  name_unsupported(preparation, trainer);
  name_without_effect(preparation, trainer);
  check_others(preparation, trainer);
}

}  // namespace lockstep
