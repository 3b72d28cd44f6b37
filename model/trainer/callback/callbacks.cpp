#include "model/trainer/callback/callbacks.hpp"

#include <utility>

#include "model/core/ensure.hpp"
#include "model/trainer/callback/early_stopping.hpp"
#include "model/trainer/callback/learning_rate_monitor.hpp"
#include "model/trainer/callback/model_checkpoint.hpp"

namespace lockstep {

namespace {

std::unique_ptr<Callback> make(const CallbackSettings& settings, Training& training) {
  if (const auto* stopping = std::get_if<EarlyStoppingSettings>(&settings)) {
    return std::make_unique<EarlyStopping>(*stopping, training);
  }
  if (const auto* checkpoint = std::get_if<ModelCheckpointSettings>(&settings)) {
    return std::make_unique<ModelCheckpoint>(*checkpoint, training);
  }
  return std::make_unique<LearningRateMonitor>(std::get<LearningRateMonitorSettings>(settings),
                                               training);
}

}  // namespace

Callbacks::Callbacks(const std::vector<CallbackSettings>& settings, Training& training) {
  for (const bool checkpoints : {false, true}) {
    for (const CallbackSettings& one : settings) {
      if (std::holds_alternative<ModelCheckpointSettings>(one) == checkpoints) {
        callbacks_.push_back(make(one, training));
      }
    }
  }
  for (size_t hook = 0; hook < hooks; ++hook) {
    for (const std::unique_ptr<Callback>& callback : callbacks_) {
      if (callback->acts_on(static_cast<CallbackHook>(hook))) {
        acting_[hook].push_back(callback.get());
      }
    }
  }
}

Program Callbacks::run(CallbackHook hook) {
  for (Callback* const callback : acting(hook)) {
    co_await callback->run(hook);
  }
}

std::vector<SavedObject> Callbacks::state() const {
  std::vector<SavedObject> saved;
  for (const std::unique_ptr<Callback>& callback : callbacks_) {
    saved.push_back(callback->state());
  }
  return saved;
}

void Callbacks::restore(const std::vector<SavedObject>& saved) {
  ensure(saved.size() == callbacks_.size(), "a checkpoint of the same trainer");
  for (size_t index = 0; index < saved.size(); ++index) {
    const SavedObject& own = saved[index];
    if (!own.numbers.empty() || !own.texts.empty()) {
      callbacks_[index]->restore(own);
    }
  }
}

std::vector<int64_t> Callbacks::counted() const {
  std::vector<int64_t> counted;
  for (const std::unique_ptr<Callback>& callback : callbacks_) {
    for (const int64_t* const counter : callback->counters()) {
      counted.push_back(*counter);
    }
  }
  return counted;
}

void Callbacks::count_left_out(const std::vector<int64_t>& counted, int64_t times) {
  auto more = counted.begin();
  for (const std::unique_ptr<Callback>& callback : callbacks_) {
    for (int64_t* const counter : callback->counters()) {
      *counter += *more++ * times;
    }
  }
}

std::vector<Callback::Rates> Callbacks::rates_at(CallbackHook hook) const {
  std::vector<Callback::Rates> rows;
  for (const Callback* callback : acting(hook)) {
    if (Callback::Rates row = callback->rates_at(hook); !row.empty()) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void Callbacks::go_on_from(int64_t step) {
  for (const auto& callback : callbacks_) {
    callback->go_on_from(step);
  }
}

}  // namespace lockstep
