#include "model/trainer/loop/steps_come.hpp"

#include <fmt/core.h>

#include "model/program/rank.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

// training_epoch_loop.py, _should_accumulate: batches are counted within an epoch, and where the
// strategy accumulates, the last one ends no window. `global_step` so stays 0, however often the
// engine steps by its own count over the ends of epochs.
void check_steps_come(const TrainingProgram& program, int64_t batches) {
  const TrainerSettings& trainer = program.trainer;
  const bool counts = trainer.automatic_optimization && program.accumulates_itself;
  if (!counts || !trainer.ends_by_steps_alone || trainer.max_steps <= 0 || batches <= 0 ||
      batches >= trainer.accumulate_grad_batches || trainer.reload_every_n_epochs > 0) {
    return;
  }
  throw ProgramException(
      site_of(program.scenario->trainer->max_steps->place),
      fmt::format("`max_steps` is never reached, and this training never ends: an epoch has {0} of "
                  "the {1} batches of `accumulate_grad_batches`, which Lightning counts within an "
                  "epoch (accumulate over at most {0} batches, or give max_epochs)",
                  batches, trainer.accumulate_grad_batches));
}

}  // namespace lockstep
