#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "model/scenario/scenario.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/callback/callback_settings.hpp"
#include "model/trainer/checkpoint/checkpoint_store.hpp"
#include "model/trainer/data/data_loader.hpp"
#include "model/trainer/logging/run_log.hpp"
#include "model/trainer/loop/repetition.hpp"
#include "model/trainer/scheduler/scheduler_settings.hpp"
#include "model/user_program/metric_sites.hpp"
#include "model/user_program/program_settings.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

/// Arguments of Lightning's Trainer with their defaults.
struct TrainerSettings {
  static constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

  /// `limit_*_batches`: a number of batches, or a part of them.
  struct Limit {
    int64_t batches = no_limit;
    double part = 1;
    SiteId site = no_site;  ///< where the scenario gives it
    int64_t of(int64_t available) const;
    bool allows_any() const { return batches > 0 && part > 0; }
  };

  Version lightning{2, 6, 0};
  int64_t max_epochs = 1000;
  int64_t min_epochs = 0;
  int64_t max_steps = no_limit;
  int64_t min_steps = 0;
  Limit limit_train;
  Limit limit_validation;
  Limit limit_test;
  Limit limit_predict;
  Limit val_check_interval;
  int64_t check_val_every_n_epoch = 1;  ///< 0: batches are counted over epochs
  int64_t num_sanity_val_steps = 2;     ///< no_limit: all
  int64_t accumulate_grad_batches = 1;
  int64_t reload_every_n_epochs = 0;  ///< the loaders; 0: never
  GradientClipping gradient_clipping;
  bool automatic_optimization = true;
  bool inject_sampler = true;
  bool ends_by_steps_alone = false;  ///< max_steps: no epoch is the last, and nothing stops it
  bool fast_dev_run = false;
  int64_t log_every_n_steps = 50;
  bool has_logger = true;

  /// Whether loaders that were made so many epochs ago are made again.
  bool reloads_after(int64_t epochs) const {
    return reload_every_n_epochs > 0 && epochs >= reload_every_n_epochs;
  }
  /// `val_check_interval` is 1.0, or the 1 that equals it in Python.
  bool validates_whole_epochs() const {
    return val_check_interval.batches == 1 ||
           (val_check_interval.batches == no_limit && val_check_interval.part == 1);
  }
};

/// Places in Lightning that call collectives.
struct TrainerSites {
  SiteId log_dir, pre_setup, post_setup, resume_end, run_stage, prepare_data, train_loader,
      val_loader, test_loader, predict_loader, loader_length, sigterm, sigterm_handler,
      sigterm_exit, should_stop;
};
/// Adds the sites of a stage to a table. Every stage has its own: a rank that validates alone has
/// reached statements that the others never did.
TrainerSites add_trainer_sites(Sites& sites, Stage stage);

/// Data that all ranks of a training run share. Read-only except the log; outlives the run.
struct TrainingProgram {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const Network> network;
  /// Where `network` is what each rank has of it, because ranks compute layers together.
  std::shared_ptr<const Network> whole_network{};
  ProgramSettings settings;
  TrainerSettings trainer;
  TrainingPlan plan;
  std::vector<std::string> optimizer_names;  ///< of plan.optimizers; empty where it has none
  StrategyFactory make_strategy;
  std::function<TrainerMembership(const Place& place)> membership;
  bool accumulates_itself = false;                         ///< the strategy does
  bool backward_in_forward = false;                        ///< of the strategy
  ManualClipping manual_clipping = ManualClipping::clips;  ///< of the strategy
  std::string_view gathers_parameters{};                   ///< StrategyTraits
  bool holds_whole_state = false;                          ///< StrategyTraits
  std::optional<GradientClipping> clips_as{};              ///< of a step for which nothing is asked
  bool scales_loss = false;                                ///< by a GradScaler, under 16-mixed
  LossScale::Others scales_for{};                          ///< LossScale::stand_for
  StrategyArguments strategy_arguments;
  /// Of ranks that freeze layers which others train, or cut them in another way, and the networks
  /// that they hold.
  std::map<int32_t, TrainingPlan> plans_of_ranks{};
  std::vector<std::shared_ptr<const Network>> networks_of_ranks{};
  const TrainingPlan& plan_of(int32_t rank) const {
    const auto own = plans_of_ranks.find(rank);
    return own == plans_of_ranks.end() ? plan : own->second;
  }
  /// Of ranks that are given others, as a script that asks for its rank gives them.
  std::map<int32_t, StrategyArguments> arguments_of_ranks{};
  const StrategyArguments& arguments_of(int32_t rank) const {
    const auto own = arguments_of_ranks.find(rank);
    return own == arguments_of_ranks.end() ? strategy_arguments : own->second;
  }
  std::vector<LoaderSettings> train;
  std::vector<LoaderSettings> validation;
  std::vector<LoaderSettings> test;
  std::vector<LoaderSettings> predict;
  bool sets_should_stop = false;  ///< some statement does; else only callbacks stop early
  std::vector<CallbackSettings> callbacks;
  std::vector<SchedulerSettings> schedulers;
  bool monitors_metrics = false;  ///< some callback or scheduler reads callback_metrics
  BytesPerSecond
      disk{};  ///< of rank 0's node, where the scenario gives it; else files take no time
  bool in_children = false;  ///< stages run in spawned or forked processes
  Repetition repetition{};
  bool keeps_parameters = false;              ///< their final values go into the log
  bool uses_output = false;                   ///< some statement reads `output` or `outputs`
  bool uses_loss = false;                     ///< some statement reads `loss` or `outputs`
  std::array<TrainerSites, 4> sites;          ///< by Stage
  std::map<std::string, LogSites> log_sites;  ///< by key: the first statement that logs it
  std::vector<MetricDefinition> metrics;
  MetricSites metric_sites;
  std::shared_ptr<RunLog> log;
  std::shared_ptr<CheckpointStore> store{};      ///< what outlives the run; null: nothing does
  std::shared_ptr<const SavedTraining> saved{};  ///< the newest `last` on the disk; null: none
};

/// `main` (by default `fit`) on every rank, under the strategy.
ProgramOfRank training_program(std::shared_ptr<const TrainingProgram> program);

}  // namespace lockstep
