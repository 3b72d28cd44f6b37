#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario/object.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

/// The arguments of Lightning's `Trainer`, unchanged. What they mean depends on the version, so
/// that is decided where the trainer is built; here only their form is checked.
struct TrainerSpec {
  /// `num_nodes` that the script reads from the launcher: as many as there are.
  static constexpr int64_t nodes_of_launcher = 0;

  Given<std::string> accelerator;
  std::optional<Object> strategy;
  std::optional<PlainValue> devices;  ///< int, text, list, or {find_usable_cuda_devices: n}
  std::optional<PlainValue> gpus;     ///< 1.x: as `devices`
  Given<int64_t> num_nodes;
  Given<int64_t> num_processes;
  Given<std::string> precision;  ///< "32-true", "16", ..: an int is taken as its digits
  Given<int64_t> max_epochs;     ///< -1: no limit
  Given<int64_t> min_epochs;
  Given<int64_t> max_steps;  ///< -1: no limit
  Given<int64_t> min_steps;
  std::optional<PlainValue> max_time;
  std::optional<PlainValue> limit_train_batches;  ///< int: batches; float: a part
  std::optional<PlainValue> limit_val_batches;
  std::optional<PlainValue> limit_test_batches;
  std::optional<PlainValue> limit_predict_batches;
  std::optional<PlainValue> overfit_batches;
  std::optional<PlainValue> val_check_interval;
  std::optional<PlainValue> fast_dev_run;  ///< bool, or a number of batches
  Given<int64_t> check_val_every_n_epoch;
  Given<int64_t> num_sanity_val_steps;
  Given<int64_t> log_every_n_steps;
  Given<int64_t> accumulate_grad_batches;
  Given<double> gradient_clip_val;
  Given<std::string> gradient_clip_algorithm;
  Given<int64_t> reload_dataloaders_every_n_epochs;
  Given<bool> use_distributed_sampler;
  Given<bool> replace_sampler_ddp;  ///< 1.x name of use_distributed_sampler
  Given<bool> sync_batchnorm;
  Given<bool> auto_select_gpus;
  std::optional<PlainValue> deterministic;  ///< bool, or "warn"
  Given<bool> benchmark;
  Given<bool> inference_mode;
  Given<bool> detect_anomaly;
  Given<bool> barebones;
  Given<bool> enable_checkpointing;
  Given<bool> enable_progress_bar;
  Given<bool> enable_model_summary;
  Given<std::string> amp_backend;
  Given<std::string> amp_level;
  Given<std::string> default_root_dir;
  std::vector<Object> callbacks;
  std::vector<Object> plugins;
  std::optional<PlainValue> logger;  ///< bool, object or list of objects
  std::optional<Object> profiler;
  std::vector<ObjectArgument> others;  ///< arguments that only some versions have, or that others
                                       ///< than those above change nothing of what is modelled
  SourcePlace place{};
};

}  // namespace lockstep
