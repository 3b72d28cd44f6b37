#include "model/trainer/loop/termination.hpp"

#include "model/core/failure.hpp"
#include "model/program/fault_port.hpp"

namespace lockstep {

Termination::Termination(Rank& rank, const TrainingProgram& program,
                         TrainerCollectives& collectives)
    : rank_(rank),
      program_(program),
      collectives_(collectives),
      sites_(&program.sites[static_cast<size_t>(Stage::fit)]) {}

void Termination::begin_stage(const TrainerSites& sites) {
  sites_ = &sites;
  has_come_ = false;
}

// Both broadcasts are torch.distributed's, which XLA does not initialise.
bool Termination::broadcasts() const {
  return program_.trainer.lightning >= Version{2, 5, 3} &&
         program_.settings.device != DeviceType::tpu;
}

// From 2.5.3 on the handler itself broadcasts, wherever the rank is and whatever the others
// call next. Outside of a stage nobody handles the signal, and it ends the process.
Program Termination::handle() {
  if (!handles_) {
    throw RankLost();
  }
  if (broadcasts() && rank_.world_size() > 1) {
    const TensorPointer flag = collectives_.tensor_of(1);
    co_await collectives_.broadcast(flag, sites_->sigterm_handler);
  }
  has_come_ = true;
}

// training_epoch_loop.py, _broadcast_sigterm_tensor.
Program Termination::share() {
  if (!broadcasts() || !collectives_.distributed()) {
    co_return;
  }
  const TensorPointer flag = collectives_.tensor_of(has_come_ ? 1 : 0);
  co_await collectives_.broadcast(flag, sites_->sigterm);
  if (rank_.read(flag->slice).integer(0) == 1) {
    co_await collectives_.barrier(sites_->sigterm_exit);
    throw ProgramExit(sites_->sigterm, "SIGTERMException");
  }
}

void Termination::leave_if_come(bool is_done) const {
  if (has_come_ && !is_done) {
    throw ProgramExit(sites_->sigterm_handler, "SIGTERMException");
  }
}

}  // namespace lockstep
