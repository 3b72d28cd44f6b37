#pragma once

#include <optional>
#include <set>
#include <string>

#include "model/trainer/callback/best_checkpoints.hpp"
#include "model/trainer/callback/callback.hpp"
#include "model/trainer/callback/callback_log.hpp"
#include "model/trainer/callback/checkpoint_name.hpp"

namespace lockstep {

/// Lightning's ModelCheckpoint (model_checkpoint.py). Every rank decides by its own value of the
/// monitored metric and keeps its own list of the best; rank 0 alone writes files. Where less than
/// k are kept a rank saves without asking; else all ranks must agree.
class ModelCheckpoint final : public Callback {
 public:
  ModelCheckpoint(const ModelCheckpointSettings& settings, Training& training);

  bool acts_on(CallbackHook hook) const override;
  Program run(CallbackHook hook) override;
  SavedObject state() const override;
  void restore(const SavedObject& saved) override;
  std::vector<int64_t*> counters() override { return {&last_step_saved_, &log().saved}; }
  void go_on_from(int64_t step) override;

 private:
  Program send_folder();
  Program at_batch_end();
  Program at_end_of_epoch();
  Program save_deferred();
  Program save_top_k();
  Program save_newest();
  Program save_monitored(double value);
  Task<bool> is_good_enough(double value);
  Program save_last();
  Task<bool> file_exists(std::string file);
  std::set<std::string>& files();
  std::string path_of(const std::string& file) const;
  /// The name that is free, or `own`, which is about to be removed.
  Task<std::string> free_name(CheckpointName name, std::string own);
  /// `last`: its path, where it is that of the newest state.
  Program save(std::string file, std::string last = "");
  void remove(const std::string& previous, const std::string& current);
  bool has_saved_this_step() const;
  bool saves_on_train_epoch_end() const;
  bool will_validate() const;
  bool is_due_by_epoch() const;
  bool monitors_missing_metric() const;
  CheckpointName name() const { return {settings_.filename, settings_.auto_insert_metric_name}; }
  CheckpointLog& log() const;
  void publish();

  const ModelCheckpointSettings& settings_;
  Training& training_;
  BestCheckpoints best_;
  size_t log_;      ///< index into the rank's checkpoints
  size_t monitor_;  ///< index into the rank's monitors
  std::string best_path_;
  std::string last_path_;
  std::string last_saved_;
  int64_t last_step_saved_ = 0;
  bool deferred_ = false;  ///< to the end of validation, whose metric is monitored
};

}  // namespace lockstep
