// The signatures of Trainer.__init__ in Lightning 1.4 to 2.6 (trainer/trainer.py), and the
// removals that the changelogs of 1.5 to 2.0 list.
#include "model/trainer/framework/trainer_arguments.hpp"
#include "model/trainer/framework/lightning_versions.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

using Otherwise = TrainerArgument::Otherwise;

constexpr Version first{};

constexpr auto arguments = std::to_array<TrainerArgument>({
    {"auto_lr_find", "false", "1.x: what `trainer.tune` looks for", first, v2_0,
     Otherwise::without_effect, "Tuner(trainer).lr_find()"},
    {"auto_scale_batch_size", "false", "1.x: what `trainer.tune` looks for", first, v2_0,
     Otherwise::without_effect, "Tuner(trainer).scale_batch_size()"},
    {"checkpoint_callback", "true", "the name of enable_checkpointing before 1.5", first, v1_7,
     Otherwise::not_modelled, "enable_checkpointing"},
    {"distributed_backend", "", "the name of `accelerator` before 1.0", first, v1_5,
     Otherwise::read, "accelerator, or strategy from 1.5 on"},
    {"enable_autolog_hparams", "true", "log hyperparameters at the start", v2_5, never},
    {"flush_logs_every_n_steps", "", "1.x: steps between two writes of the loggers", first, v1_7,
     Otherwise::without_effect, "the argument of the logger"},
    {"hpus", "", "1.x: Gaudi processors (HPU)", v1_6, v2_0, Otherwise::no_such_device,
     "accelerator: gpu and devices"},
    {"ipus", "", "1.x: processors of Graphcore (IPU)", first, v2_0, Otherwise::no_such_device,
     "accelerator: gpu and devices"},
    {"log_gpu_memory", "", "1.x: log the memory in use", first, v1_7, Otherwise::without_effect,
     "DeviceStatsMonitor"},
    {"model_registry", "", "where ModelCheckpoint uploads models", v2_5, never},
    {"move_metrics_to_cpu", "false", "1.x: keep logged values in host memory", first, v2_0,
     Otherwise::not_modelled, "nothing: leave it out"},
    {"multiple_trainloader_mode", "max_size_cycle", "1.x: how several loaders are combined", first,
     v2_0, Otherwise::without_effect, "CombinedLoader"},
    {"prepare_data_per_node", "true", "1.x: prepare_data on each node, not on one", first, v1_7,
     Otherwise::not_modelled, "the attribute of the module"},
    {"process_position", "0", "1.x: line of the progress bar", first, v1_7,
     Otherwise::without_effect, "TQDMProgressBar"},
    {"progress_bar_refresh_rate", "", "1.x: batches between two updates of the bar", first, v1_7,
     Otherwise::without_effect, "TQDMProgressBar, or enable_progress_bar"},
    {"reload_dataloaders_every_epoch", "false", "1.x: make the loaders anew each epoch", first,
     v1_6, Otherwise::not_modelled, "reload_dataloaders_every_n_epochs"},
    {"resume_from_checkpoint", "", "1.x: path of a checkpoint", first, v2_0,
     Otherwise::not_modelled, "fit(ckpt_path=..)"},
    {"stochastic_weight_avg", "false", "1.x: average weights over epochs", first, v1_7,
     Otherwise::not_modelled, "the callback StochasticWeightAveraging"},
    {"terminate_on_nan", "false", "1.x: raise where a loss is nan", first, v1_7,
     Otherwise::not_modelled, "detect_anomaly"},
    {"tpu_cores", "", "1.x: TPU cores: 1, 8, or the number of one of them, as in [1]", first, v2_0,
     Otherwise::read, "accelerator: tpu and devices"},
    {"track_grad_norm", "-1", "1.x: log norms of gradients", first, v2_0, Otherwise::not_modelled,
     "on_before_optimizer_step"},
    {"truncated_bptt_steps", "", "1.x: split batches in time", first, v1_5, Otherwise::not_modelled,
     "the attribute of the module"},
    {"weights_save_path", "", "1.x: where checkpoints go", first, v1_8, Otherwise::without_effect,
     "default_root_dir, or dirpath of ModelCheckpoint"},
    {"weights_summary", "top", "1.x: a table of the layers", first, v1_7, Otherwise::without_effect,
     "enable_model_summary"},
});

// Defaults that another version has.
struct OtherDefault {
  std::string_view name;
  std::string_view text;
};
constexpr auto other_defaults = std::to_array<OtherDefault>({
    {"flush_logs_every_n_steps", "100"},
    {"terminate_on_nan", "null"},
    {"prepare_data_per_node", "null"},
    {"stochastic_weight_avg", "null"},
});

}  // namespace

std::span<const TrainerArgument> trainer_arguments() { return arguments; }

const TrainerArgument* find_trainer_argument(std::string_view name) {
  const auto* const found = std::ranges::find(arguments, name, &TrainerArgument::name);
  return found == arguments.end() ? nullptr : found;
}

bool is_default(const TrainerArgument& argument, const PlainValue& value) {
  const std::string text = text_of(value);
  return value.is_null() || text == argument.default_text ||
         std::ranges::any_of(other_defaults, [&](const OtherDefault& other) {
           return other.name == argument.name && other.text == text;
         });
}

std::optional<Version> newest_with_arguments(const TrainerSpec& trainer) {
  std::optional<Version> newest;
  for (const ObjectArgument& given : trainer.others) {
    const TrainerArgument* argument = find_trainer_argument(given.name);
    if (argument == nullptr || argument->until == never) {
      continue;
    }
    const Version last = argument->until == v2_0
                             ? Version{1, 9, 0}
                             : Version{argument->until.major, argument->until.minor - 1, 0};
    newest = std::min(newest.value_or(last), last);
  }
  return newest;
}

}  // namespace lockstep
