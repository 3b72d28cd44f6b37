// The callbacks of a trainer, with the ModelCheckpoint that Lightning adds (callback_connector.py).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/callback/checkpoint_name.hpp"
#include "model/trainer/prepare/object_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

/// Stands for the working directory, which a scenario does not state: only its length counts, in
/// the bytes of a folder that is broadcast.
std::string working_directory() { return std::string(32, '.'); }

void refuse(Preparation& preparation, const SourcePlace& place, const std::string& message,
            const std::string& remedy = "") {
  add_problem(preparation, Kind::refused, place, message, remedy, refused_code);
}

SiteId add_site(Preparation& preparation, const SourcePlace& place, const std::string& name,
                const std::string& part, bool is_barrier = false) {
  Site site;
  const bool has_place = place.line > 0;
  site.description = has_place ? name : "Lightning, " + name + (part.empty() ? "" : ", " + part);
  site.file = has_place ? place.file : "";
  site.line = place.line;
  site.column = place.column;
  site.part = has_place ? part : "";
  site.is_barrier = is_barrier;
  return preparation.sites.add(site);
}

MonitorMode mode_of(Preparation& preparation, const Object& callback) {
  const std::string mode = ObjectArguments(callback).text("mode", "min");
  if (mode != "min" && mode != "max") {
    refuse(preparation, callback.place,
           fmt::format("{}: `mode` can be min or max, got {}", callback.name, mode));
  }
  return mode == "max" ? MonitorMode::max : MonitorMode::min;
}

void add_early_stopping(Preparation& preparation, const Object& callback,
                        TrainingProgram& program) {
  const ObjectArguments arguments(callback);
  EarlyStoppingSettings settings;
  settings.monitor = arguments.text("monitor", "", 0);
  settings.min_delta = arguments.number("min_delta", 0, 1);
  settings.patience = arguments.integer("patience", 3, 2);
  settings.mode = mode_of(preparation, callback);
  settings.strict = arguments.boolean("strict", true);
  settings.check_finite = arguments.boolean("check_finite", true);
  settings.stopping_threshold = arguments.optional_number("stopping_threshold");
  settings.divergence_threshold = arguments.optional_number("divergence_threshold");
  settings.check_on_train_epoch_end = arguments.optional_boolean("check_on_train_epoch_end");
  settings.site = add_site(preparation, callback.place, "EarlyStopping", "");
  if (settings.monitor.empty()) {
    refuse(preparation, callback.place, "EarlyStopping needs the argument `monitor`",
           "write {EarlyStopping: {monitor: val_loss}}");
  }
  program.callbacks.emplace_back(std::move(settings));
}

std::string folder_of(const Preparation& preparation, const std::string& given) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  const auto absolute = [](const std::string& path) {
    return path.starts_with("/") || path.find("://") != std::string::npos
               ? path
               : working_directory() + "/" + path;
  };
  if (!given.empty()) {
    return absolute(given);
  }
  const std::string root =
      trainer.default_root_dir ? absolute(trainer.default_root_dir->value) : working_directory();
  const bool* const logs = trainer.logger ? trainer.logger->get_if<bool>() : nullptr;
  const bool has_logger = logs == nullptr || *logs;
  // A logger that is made again takes the next free number.
  return root + (has_logger ? fmt::format("/lightning_logs/version_{}/checkpoints",
                                          preparation.options.attempt)
                            : "/checkpoints");
}

void add_checkpoint_sites(Preparation& preparation, const SourcePlace& place,
                          ModelCheckpointSettings& settings) {
  const auto add = [&](const std::string& part, bool is_barrier = false) {
    return add_site(preparation, place, "ModelCheckpoint", part, is_barrier);
  };
  settings.site = add("");
  constexpr std::array<const char*, 4> stages = {"", " (validate)", " (test)", " (predict)"};
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    settings.folder_site[stage] = add(std::string("broadcast of its folder") + stages[stage]);
  }
  settings.exists_site = add("whether the file exists");
  settings.save_site = add("barrier after saving", true);
}

SaveLast save_last_of(const Preparation& preparation, const ObjectArguments& arguments) {
  if (arguments.text("save_last") == "link") {
    return preparation.placement.lightning >= Version{2, 2, 0} ? SaveLast::link : SaveLast::file;
  }
  return arguments.boolean("save_last", false) ? SaveLast::file : SaveLast::no;
}

void read_triggers(Preparation& preparation, const Object& callback,
                   ModelCheckpointSettings& settings) {
  const ObjectArguments arguments(callback);
  const std::optional<int64_t> steps = arguments.optional_integer("every_n_train_steps");
  const std::optional<int64_t> epochs = arguments.optional_integer("every_n_epochs");
  settings.every_n_train_steps = steps.value_or(0);
  settings.every_n_epochs = epochs.value_or(steps ? 0 : 1);
  if (settings.every_n_train_steps < 0 || settings.every_n_epochs < 0) {
    refuse(preparation, callback.place,
           "ModelCheckpoint: `every_n_train_steps` and `every_n_epochs` are at least 0");
  }
  if (settings.every_n_train_steps > 0 && settings.every_n_epochs > 0) {
    refuse(preparation, callback.place,
           "ModelCheckpoint: `every_n_train_steps` and `every_n_epochs` cannot be combined",
           "make two ModelCheckpoints");
  }
}

void check_checkpoint(Preparation& preparation, const Object& callback,
                      const ModelCheckpointSettings& settings) {
  const ObjectArguments arguments(callback);
  if (settings.save_top_k < -1) {
    refuse(preparation, callback.place, "ModelCheckpoint: `save_top_k` is at least -1");
  }
  if (settings.monitor.empty() && settings.save_top_k > 1) {
    refuse(preparation, callback.place,
           fmt::format("ModelCheckpoint(save_top_k={}) has no `monitor` to rank its files by",
                       settings.save_top_k),
           "name a metric: monitor: val_loss");
  }
  for (const char* name : {"train_time_interval", "save_on_exception"}) {
    const PlainValue* const given = arguments.find(name);
    if (given != nullptr && !(given->get_if<bool>() != nullptr && !*given->get_if<bool>())) {
      add_problem(preparation, Kind::unsupported, given->place,
                  fmt::format("`{}` of ModelCheckpoint is not modelled yet", name));
    }
  }
  try {
    const CheckpointName name{settings.filename, settings.auto_insert_metric_name};
    name.of(0, 0, {});
  } catch (const std::invalid_argument& error) {
    add_problem(preparation, Kind::invalid, callback.place,
                fmt::format("`filename`: {}", error.what()));
  }
}

void add_model_checkpoint(Preparation& preparation, const Object& callback,
                          TrainingProgram& program) {
  const ObjectArguments arguments(callback);
  ModelCheckpointSettings settings;
  settings.folder = folder_of(preparation, arguments.text("dirpath", "", 0));
  settings.filename = arguments.text("filename", "", 1);
  settings.monitor = arguments.text("monitor", "", 2);
  settings.mode = mode_of(preparation, callback);
  settings.save_top_k = arguments.integer("save_top_k", 1);
  settings.save_last = save_last_of(preparation, arguments);
  settings.save_weights_only = arguments.boolean("save_weights_only", false);
  settings.auto_insert_metric_name = arguments.boolean("auto_insert_metric_name", true);
  settings.save_on_train_epoch_end = arguments.optional_boolean("save_on_train_epoch_end");
  settings.enable_version_counter = arguments.boolean("enable_version_counter", true);
  read_triggers(preparation, callback, settings);
  check_checkpoint(preparation, callback, settings);
  add_checkpoint_sites(preparation, callback.place, settings);
  program.callbacks.emplace_back(std::move(settings));
}

void add_default_checkpoint(Preparation& preparation, TrainingProgram& program) {
  ModelCheckpointSettings settings;
  settings.added_by_trainer = true;
  settings.folder = folder_of(preparation, "");
  add_checkpoint_sites(preparation, {}, settings);
  program.callbacks.emplace_back(std::move(settings));
}

bool has_no_logger(const Preparation& preparation, const TrainingProgram& program) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  const bool* const logs = trainer.logger ? trainer.logger->get_if<bool>() : nullptr;
  return logs != nullptr && !*logs && !program.trainer.fast_dev_run;
}

void add_learning_rate_monitor(Preparation& preparation, const Object& callback,
                               TrainingProgram& program) {
  using Interval = LearningRateMonitorSettings::Interval;
  const ObjectArguments arguments(callback);
  LearningRateMonitorSettings settings;
  const std::string interval = arguments.text("logging_interval", "", 0);
  if (!interval.empty() && interval != "step" && interval != "epoch") {
    refuse(preparation, callback.place,
           "LearningRateMonitor: `logging_interval` is step, epoch or null");
  }
  settings.interval = interval == "step"    ? Interval::step
                      : interval == "epoch" ? Interval::epoch
                                            : Interval::by_scheduler;
  settings.log_momentum = arguments.boolean("log_momentum", false);
  settings.log_weight_decay = arguments.boolean("log_weight_decay", false);
  if (has_no_logger(preparation, program)) {
    refuse(preparation, callback.place,
           "LearningRateMonitor cannot be used with a Trainer that has no logger",
           "remove `logger: false`");
  }
  program.callbacks.emplace_back(settings);
}

// device_stats_monitor.py reads this rank's device and hands the figures to the loggers.
void note_device_stats(Preparation& preparation, const Object& callback,
                       const TrainingProgram& program) {
  if (has_no_logger(preparation, program)) {
    refuse(preparation, callback.place,
           "Cannot use `DeviceStatsMonitor` callback with `Trainer(logger=False)`.",
           "remove `logger: false`");
  } else {
    add_problem(preparation, Kind::note, callback.place,
                "the callback DeviceStatsMonitor logs figures of the device and sends nothing: it "
                "has no effect here (run --logs writes such figures)");
  }
}

bool only_shows(const std::string& name) {
  return name == "ModelSummary" || name == "RichModelSummary" || name == "TQDMProgressBar" ||
         name == "RichProgressBar";
}

void add_callback(Preparation& preparation, const Object& callback, TrainingProgram& program) {
  if (callback.name == "EarlyStopping") {
    add_early_stopping(preparation, callback, program);
  } else if (callback.name == "ModelCheckpoint") {
    add_model_checkpoint(preparation, callback, program);
  } else if (callback.name == "LearningRateMonitor") {
    add_learning_rate_monitor(preparation, callback, program);
  } else if (callback.name == "DeviceStatsMonitor") {
    note_device_stats(preparation, callback, program);
  } else if (only_shows(callback.name)) {
    add_problem(preparation, Kind::note, callback.place,
                fmt::format("the callback {} has no effect here", callback.name));
  } else {
    add_problem(preparation, Kind::unsupported, callback.place,
                fmt::format("the callback {} is not modelled yet", callback.name),
                "supported: EarlyStopping, ModelCheckpoint, LearningRateMonitor; what others do "
                "may be written as hooks under `program`");
  }
}

// What distinguishes two callbacks in a checkpoint (their state_key); the trainer refuses twins.
std::string state_key(const CallbackSettings& callback) {
  if (const auto* stopping = std::get_if<EarlyStoppingSettings>(&callback)) {
    return fmt::format("EarlyStopping {} {}", stopping->monitor, static_cast<int>(stopping->mode));
  }
  if (const auto* checkpoint = std::get_if<ModelCheckpointSettings>(&callback)) {
    return fmt::format("ModelCheckpoint {} {} {} {}", checkpoint->monitor,
                       static_cast<int>(checkpoint->mode), checkpoint->every_n_train_steps,
                       checkpoint->every_n_epochs);
  }
  return "";
}

void refuse_twins(Preparation& preparation, const TrainingProgram& program) {
  std::vector<std::string> known;
  for (const CallbackSettings& callback : program.callbacks) {
    const std::string key = state_key(callback);
    if (!key.empty() && std::count(known.begin(), known.end(), key) != 0) {
      refuse(preparation, preparation.scenario->trainer->place,
             fmt::format("two callbacks of one state: {}", key.substr(0, key.find(' '))),
             "let them differ in `monitor` or `mode`");
    }
    known.push_back(key);
  }
}

bool reads_metrics(const CallbackSettings& callback) {
  const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
  return std::holds_alternative<EarlyStoppingSettings>(callback) ||
         (checkpoint != nullptr && (!checkpoint->monitor.empty() || !checkpoint->filename.empty()));
}

}  // namespace

void prepare_callbacks(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  program.sets_should_stop =
      scenario.program && find_statement(*scenario.program, StatementKind::should_stop) != nullptr;
  const TrainerSpec& trainer = *scenario.trainer;
  bool has_checkpoint = false;
  for (const Object& callback : trainer.callbacks) {
    add_callback(preparation, callback, program);
    has_checkpoint = has_checkpoint || callback.name == "ModelCheckpoint";
  }
  const bool enabled = value_or(trainer.enable_checkpointing, true);
  if (has_checkpoint && !enabled) {
    refuse(preparation, trainer.enable_checkpointing->place,
           "`enable_checkpointing` is false, and the callbacks hold a ModelCheckpoint",
           "remove one of them");
  } else if (!has_checkpoint && enabled) {
    add_default_checkpoint(preparation, program);
  }
  refuse_twins(preparation, program);
  if (scenario.cluster && scenario.cluster->disk) {
    program.disk = scenario.cluster->disk->value;
  }
  program.monitors_metrics =
      std::any_of(program.callbacks.begin(), program.callbacks.end(), reads_metrics) ||
      std::any_of(program.schedulers.begin(), program.schedulers.end(),
                  [](const SchedulerSettings& scheduler) { return scheduler.is_monitored(); });
}

}  // namespace lockstep
