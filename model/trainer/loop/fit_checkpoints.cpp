#include "model/trainer/loop/fit_checkpoints.hpp"

#include <algorithm>

#include "model/strategy/saved_state.hpp"
#include "model/trainer/callback/checkpoint_name.hpp"

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

FitCheckpoints::FitCheckpoints(const TrainingContext& context, TrainerCollectives& collectives,
                               HookRunner& hooks, const State& state)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      streams_(context.interpreter.streams()),
      collectives_(collectives),
      hooks_(hooks),
      state_(state) {}

Program FitCheckpoints::save(SiteId site, bool weights_only, int64_t path_length,
                             const std::string& last) {
  co_await hooks_.run("on_save_checkpoint");
  streams_.hand_over_compute();
  CheckpointRequest request;
  request.weights_only = weights_only;
  request.path = Bytes(pickled_bytes_of_text(path_length));
  request.disk = program_.disk;
  log_.checkpoint_bytes = co_await strategy_.save_checkpoint(rank_, request, site);
  if (!last.empty()) {
    co_await keep(last, weights_only);
  }
  co_await collectives_.barrier(site);
}

Program FitCheckpoints::keep(std::string file, bool weights_only) {
  if (!program_.store) {
    co_return;
  }
  SavedTraining saved;
  saved.file = std::move(file);
  saved.files = {files_.begin(), files_.end()};
  saved.number = ++kept_;
  saved.weights_only = weights_only;
  saved.bytes = log_.checkpoint_bytes ? log_.checkpoint_bytes->own : Bytes{};
  saved.position = resumes_at_;
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    saved.learning_rates.push_back(state_.rates.learning_rate(optimizer));
  }
  saved.schedulers = state_.schedulers.schedules().state();
  if (state_.loss_scale) {
    saved.loss_scale = state_.loss_scale->state();
  }
  saved.callbacks = state_.callbacks.state();
  saved.trained = trained_samples();
  if (program_.holds_whole_state) {
    co_await streams_.synchronize_all();  // torch.save copies from the device
    saved.parameters = saved_parameters(rank_, strategy_.replica());
    saved.buffers = saved_buffers(rank_, strategy_.replica());
  }
  program_.store->keep(rank_.id(), std::move(saved));
}

// checkpoint_connector.py: without a file it warns, and the fit begins anew.
Program FitCheckpoints::restore(SiteId site) {
  if (asked_.empty()) {
    co_return;
  }
  log_.resumption.emplace();
  if (!program_.saved || !is_found(*program_.saved, program_.callbacks)) {
    co_return;
  }
  const SavedTraining& saved = *program_.saved;
  const int64_t readers = rank_.place().local_world_size;
  if (program_.disk.count() > 0 && saved.bytes > Bytes{}) {
    co_await rank_.settle(rank_.host(saved.bytes * readers / program_.disk, site));
  }
  co_await hooks_.run("on_load_checkpoint");
  if (saved.weights_only) {
    throw ProgramException(site,
                           "KeyError: Trying to restore optimizer state but checkpoint contains "
                           "only the model: save_weights_only was set");
  }
  files_.insert(saved.files.begin(), saved.files.end());
  state_.callbacks.restore(saved.callbacks);
  if (program_.holds_whole_state && !saved.parameters.empty()) {
    co_await streams_.synchronize_all();
    lockstep::restore(rank_, saved.parameters, saved.buffers, strategy_.replica());
  }
  const FitPosition& position = saved.position;
  state_.progress.global_step = position.global_step;
  state_.progress.batches_that_stepped = position.batches_that_stepped;
  state_.progress.epoch = position.epoch;
  state_.progress.batches = position.batches;
  state_.progress.resumed_batch = position.batch;
  resumes_at_ = position;
  log_.steps = state_.progress.global_step;
  log_.epochs = state_.progress.epoch;
  state_.schedulers.schedules().restore(saved.schedulers);
  if (state_.loss_scale && saved.loss_scale) {
    state_.loss_scale->restore(*saved.loss_scale);
  }
  for (size_t optimizer = 0; optimizer < saved.learning_rates.size(); ++optimizer) {
    state_.rates.set_learning_rate(
        optimizer,
        saved.learning_rates[optimizer]);  // in its state, as torch keeps it
  }
  log_.resumption = {saved.file, position.global_step, position.epoch, position.batch};
}

std::vector<TrainedSamples> FitCheckpoints::trained_samples() const {
  std::vector<TrainedSamples> trained;
  for (const SampleUse& use : log_.samples) {
    if (use.stage == "train") {
      trained.push_back({use.epoch, use.samples});
    }
  }
  if (epoch_batches_ != nullptr) {
    trained.push_back({state_.progress.epoch, {*epoch_batches_, epoch_batches_used_}});
  }
  return trained;
}

}  // namespace lockstep
