// Where the program is, and what Lightning does on a SIGTERM that comes there
// (trainer/connectors/signal_connector.py).
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "model/program/fault_port.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

Program Training::begin_epoch() {
  position_.epoch = progress.epoch;
  metrics_.begin_pass(Stage::fit);
  kept_lists_.begin_pass(Stage::fit, false);
  return stand_at(position_);
}

void Training::begin_evaluation(Stage stage, bool is_sanity_check) {
  metrics_.begin_pass(stage);
  kept_lists_.begin_pass(stage, is_sanity_check);
}

void Training::end_evaluation() {
  metrics_.end_evaluation();
  kept_lists_.end_evaluation();
}

// Only outputs of batches belong to an epoch: a history of epochs is meant to grow.
void Training::list_grew(const std::string& name) {
  if (batch_ != nullptr) {
    kept_lists_.grew(name);
  }
}

void Training::list_read(const std::string& name, SiteId site) {
  if (batch_ != nullptr) {
    return;
  }
  const std::string leftovers = kept_lists_.ask_for_leftovers(name);
  if (!leftovers.empty()) {
    log_.add({"LS312", site,
              fmt::format("the list `{}` still holds {}: nothing has emptied it", name, leftovers),
              fmt::format("empty it at the end of this hook: - let: {{{}: \"[]\"}}", name)});
  }
}

void Training::note_batches(const LoaderSettings& loader, int64_t count) const {
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::repeat, static_cast<uint32_t>(most),
                 static_cast<uint32_t>(std::min(count, most)));
  }
}

bool Training::goes_on(const LoaderSettings& loader, bool has_more) const {
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::branch, 2, has_more ? 1 : 0);
  }
  return has_more;
}

Program Training::begin_batch() {
  position_.step = progress.global_step;
  return stand_at(position_);
}

Program Training::begin_hook(std::string_view name) {
  Position position = position_;
  position.hook = name;
  return stand_at(position);
}

Program Training::stand_at(Position position) {
  if (rank_.reached(position) == ProcessSignal::terminate) {
    co_await handle_termination();
  }
}

// Both broadcasts are torch.distributed's, which XLA does not initialise.
bool Training::joins_torch() const { return program_.settings.device != DeviceType::tpu; }

// From 2.5.3 on the handler itself broadcasts, wherever the rank is and whatever the others
// call next. Outside of a stage nobody handles the signal, and it ends the process.
Program Training::handle_termination() {
  if (!handles_signals_) {
    throw RankLost();
  }
  if (joins_torch() && program_.trainer.lightning >= Version{2, 5, 3} && rank_.world_size() > 1) {
    const TensorPointer flag = interpreter_.tensors().make(DType::int64, {1});
    rank_.write(flag->slice, Values::of(DType::int64, {1}));
    interpreter_.streams().hand_over_compute();
    co_await strategy_->broadcast(rank_, flag->slice, 0, sites().sigterm_handler);
  }
  has_termination_ = true;
}

// training_epoch_loop.py, _broadcast_sigterm_tensor.
Program Training::share_termination() {
  if (program_.trainer.lightning < Version{2, 5, 3} || !distributed() || !joins_torch()) {
    co_return;
  }
  const TensorPointer flag = interpreter_.tensors().make(DType::int64, {1});
  rank_.write(flag->slice, Values::of(DType::int64, {has_termination_ ? 1.0 : 0.0}));
  interpreter_.streams().hand_over_compute();
  co_await strategy_->broadcast(rank_, flag->slice, 0, sites().sigterm);
  if (rank_.read(flag->slice).integer(0) == 1) {
    co_await barrier(sites().sigterm_exit);
    throw ProgramExit(sites().sigterm, "SIGTERMException");
  }
}

void Training::leave_if_terminated(bool is_done) const {
  if (has_termination_ && !is_done) {
    throw ProgramExit(sites().sigterm_handler, "SIGTERMException");
  }
}

}  // namespace lockstep
