#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/strategy/local_model/loss_scale.hpp"
#include "model/trainer/callback/callbacks.hpp"
#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/progress.hpp"
#include "model/trainer/loop/training_context.hpp"
#include "model/trainer/scheduler/schedulers.hpp"

namespace lockstep {

/// The checkpoints of the fits of one rank: what is saved for the one that continues, and how that
/// continues.
class FitCheckpoints {
 public:
  /// What a checkpoint holds beside the model. All outlives the checkpoints.
  struct State {
    Progress& progress;
    OptimizerRates& rates;
    Callbacks& callbacks;
    Schedulers& schedulers;
    std::optional<LossScale>& loss_scale;
  };
  FitCheckpoints(const TrainingContext& context, TrainerCollectives& collectives, HookRunner& hooks,
                 const State& state);

  /// `trainer.save_checkpoint`: the strategy writes its files, and all meet in a barrier.
  /// `path_length`: characters of the file's name.
  Program save(SiteId site, bool weights_only, int64_t path_length, const std::string& last = "");
  /// What the next attempt will find under this name: nothing is kept where nothing outlives the
  /// run.
  Program keep(std::string file, bool weights_only);
  /// `ckpt_path` of the fit that comes; empty: it begins anew.
  void ask_for(std::string path) { asked_ = std::move(path); }
  /// Before the loop of a fit: loads the newest `last`, where the script asks for it. `site`: where
  /// a file that cannot be resumed from raises.
  Program restore(SiteId site);

  /// Where a fit goes on that reads a checkpoint of this moment.
  void set_resumes_at(const FitPosition& position) { resumes_at_ = position; }
  void set_resumes_at_epoch(int64_t epoch) {
    resumes_at_.epoch = epoch;
    resumes_at_.batch = 0;
  }
  /// The checkpoints on the disk, as rank 0 sees it.
  std::set<std::string>& files() { return files_; }
  /// The batches of the training epoch that runs, which outlive it, and how many of them have been
  /// used. Null: no epoch runs.
  void set_epoch(const RankBatches* batches) { epoch_batches_ = batches; }
  void set_used_of_epoch(int64_t batches) { epoch_batches_used_ = batches; }

 private:
  std::vector<TrainedSamples> trained_samples() const;

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  StreamOrder& streams_;
  TrainerCollectives& collectives_;
  HookRunner& hooks_;
  State state_;
  std::string asked_;
  int64_t kept_ = 0;
  FitPosition resumes_at_;
  std::set<std::string> files_;
  const RankBatches* epoch_batches_ = nullptr;
  int64_t epoch_batches_used_ = 0;
};

}  // namespace lockstep
