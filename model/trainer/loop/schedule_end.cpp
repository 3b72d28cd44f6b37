#include "model/trainer/loop/schedule_end.hpp"

#include "model/trainer/loop/repeated_epochs.hpp"

namespace lockstep {

namespace {

constexpr int64_t batches_looked_at_max = 20'000'000;

}  // namespace

int64_t batches_until_schedule_ends(Training& training, int64_t batches) {
  const TrainingProgram& program = training.program();
  const Progress& progress = training.progress;
  if (!program.repetition.batches || program.schedulers.empty() ||
      !program.trainer.automatic_optimization) {
    return TrainerSettings::no_limit;
  }
  OptimizerRates rates = training.rates();
  RateSchedules schedules(training.schedulers().schedules(), rates);
  int64_t steps = progress.global_step;
  int64_t batch = progress.resumed_batch;
  int64_t epoch = progress.epoch;
  int64_t count = progress.batches;
  while (epoch < program.trainer.max_epochs && steps < program.trainer.max_steps) {
    const bool is_last = batch + 1 >= batches;
    const bool optimizer_steps = steps_at(program, batch, is_last);
    try {
      schedules.step_after(batch, epoch, optimizer_steps, is_last);
    } catch (const ProgramException&) {
      return count;
    }
    if (++count - progress.batches == batches_looked_at_max) {
      return count;
    }
    steps += optimizer_steps ? 1 : 0;
    batch = is_last ? 0 : batch + 1;
    epoch += is_last ? 1 : 0;
  }
  return TrainerSettings::no_limit;
}

}  // namespace lockstep
