// What a fit leaves for the one that continues it, and how that continues.
#include <algorithm>

#include "model/strategy/saved_state.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

namespace {

// model_checkpoint.py, _find_last_checkpoints: each callback looks into its own folder.
bool is_found(const SavedTraining& saved, const std::vector<CallbackSettings>& callbacks) {
  const std::string folder = saved.file.substr(0, saved.file.rfind('/'));
  return std::ranges::any_of(callbacks, [&](const CallbackSettings& callback) {
    const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
    return checkpoint != nullptr && checkpoint->folder == folder;
  });
}

}  // namespace

std::vector<TrainedSamples> Training::trained_samples() const {
  std::vector<TrainedSamples> trained;
  for (const SampleUse& use : log_.samples) {
    if (use.stage == "train") {
      trained.push_back({use.epoch, use.samples.list()});
    }
  }
  if (epoch_batches != nullptr) {
    trained.push_back({progress.epoch, epoch_batches->list(epoch_batches_used, true)});
  }
  return trained;
}

Program Training::keep_checkpoint(std::string file, bool weights_only) {
  if (!program_.store) {
    co_return;
  }
  SavedTraining saved;
  saved.file = std::move(file);
  saved.files = {checkpoint_files.begin(), checkpoint_files.end()};
  saved.number = ++checkpoints_kept_;
  saved.weights_only = weights_only;
  saved.bytes = log_.checkpoint_bytes.value_or(Bytes{});
  saved.position = resumes_at;
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    saved.learning_rates.push_back(rates_.learning_rate(optimizer));
  }
  saved.schedulers = schedulers_.state();
  if (loss_scale_) {
    saved.loss_scale = loss_scale_->state();
  }
  saved.callbacks = callbacks_.state();
  saved.trained = trained_samples();
  if (program_.holds_whole_state) {
    co_await interpreter_.streams().synchronize_all();  // torch.save copies from the device
    saved.parameters = saved_parameters(rank_, strategy_->replica());
    saved.buffers = saved_buffers(rank_, strategy_->replica());
  }
  program_.store->keep(rank_.id(), std::move(saved));
}

// checkpoint_connector.py: without a file it warns, and the fit begins anew.
Program Training::restore_checkpoint() {
  if (asked_checkpoint_.empty()) {
    co_return;
  }
  log_.resumption.emplace();
  if (!program_.saved || !is_found(*program_.saved, program_.callbacks)) {
    co_return;
  }
  const SavedTraining& saved = *program_.saved;
  const int64_t readers = rank_.place().local_world_size;
  if (program_.disk.count() > 0 && saved.bytes > Bytes{}) {
    co_await rank_.settle(rank_.host(saved.bytes * readers / program_.disk, sites().resume_end));
  }
  co_await hooks_.run("on_load_checkpoint");
  if (saved.weights_only) {
    throw ProgramException(sites().resume_end,
                           "KeyError: Trying to restore optimizer state but checkpoint contains "
                           "only the model: save_weights_only was set");
  }
  checkpoint_files.insert(saved.files.begin(), saved.files.end());
  callbacks_.restore(saved.callbacks);
  if (program_.holds_whole_state && !saved.parameters.empty()) {
    co_await interpreter_.streams().synchronize_all();
    restore(rank_, saved.parameters, saved.buffers, strategy_->replica());
  }
  const FitPosition& position = saved.position;
  progress.global_step = position.global_step;
  progress.batches_that_stepped = position.batches_that_stepped;
  progress.epoch = position.epoch;
  progress.batches = position.batches;
  progress.resumed_batch = position.batch;
  resumes_at = position;
  log_.steps = progress.global_step;
  log_.epochs = progress.epoch;
  schedulers_.restore(saved.schedulers);
  if (loss_scale_ && saved.loss_scale) {
    loss_scale_->restore(*saved.loss_scale);
  }
  for (size_t optimizer = 0; optimizer < saved.learning_rates.size(); ++optimizer) {
    rates_.set_learning_rate(optimizer,
                             saved.learning_rates[optimizer]);  // in its state, as torch keeps it
  }
  log_.resumption = {saved.file, position.global_step, position.epoch, position.batch};
}

}  // namespace lockstep
