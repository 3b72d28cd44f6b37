#include "model/trainer/loop/repeated_loop.hpp"

#include <algorithm>
#include <numeric>

#include "model/user_program/rank_names.hpp"

namespace lockstep {

bool passes_are_alike(const TrainingProgram& program) {
  return program.repetition.batches && program.trainer.reload_every_n_epochs == 0;
}

bool batches_in_step(const LoaderSettings& loader) {
  if (loader.batches) {
    return loader.batches->is_constant();
  }
  return !loader.batch_size_of_rank && loader.sampler != SamplerKind::unrepeated;
}

int64_t steps_most(const TrainerSettings& settings, int64_t steps) {
  return settings.automatic_optimization ? steps : TrainerSettings::no_limit;
}

std::vector<Place> places_that_decide(Training& training) {
  const Place& own = training.rank().place();
  const Repetition& repetition = training.program().repetition;
  if (own.rank.value != 0 || !repetition.ranks_decide_apart) {
    return {own};
  }
  std::vector<int32_t> ranks = repetition.deciding_ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(own.world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::vector<Place> places;
  for (const int32_t rank : ranks) {
    places.push_back(place_of_other(own, training.program().settings.ranks_of_nodes, rank));
  }
  return places;
}

namespace {

// Those that optimizers have taken. A strategy that accumulates itself goes on over the ends of
// epochs, where Lightning counts no step.
int64_t steps_taken(const TrainingProgram& program, const Progress& progress) {
  return program.accumulates_itself ? progress.batches / program.trainer.accumulate_grad_batches
                                    : progress.global_step;
}

}  // namespace

// Under manual optimization a window may have several steps: as many as those before had.
int64_t windows_before_kept(const Training& training) {
  const std::optional<KeptSteps>& kept = training.program().repetition.kept;
  const int64_t steps = steps_taken(training.program(), training.progress);
  if (!kept || steps > kept->last + 1) {
    return TrainerSettings::no_limit;
  }
  const int64_t windows = std::max<int64_t>(1, training.progress.batches_that_stepped);
  const int64_t of_window = training.program().accumulates_itself
                                ? 1
                                : std::max<int64_t>(1, (steps + windows - 1) / windows);
  return std::max<int64_t>(0, kept->first - 1 - steps) / of_window;
}

bool is_between_kept(const TrainingProgram& program, const Progress& progress) {
  const std::optional<KeptSteps>& kept = program.repetition.kept;
  const int64_t steps = steps_taken(program, progress);
  return kept && steps >= kept->first && steps <= kept->last + 1;
}

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, int64_t until, int64_t kind) {
  PeriodStart start;
  start.first = !was_alike;
  start.alike = std::max<int64_t>(0, (until - pass) / length());
  start.kind = kind;
  return leave_out(pass, start);
}

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, int64_t until,
                               const PeriodKinds& kinds) {
  PeriodStart start;
  start.first = !was_alike;
  start.alike = std::max<int64_t>(0, (until - pass) / length());
  start.kinds = &kinds;
  return leave_out(pass, start);
}

// Under manual optimization a step goes over several batches, and begins where the one before
// ended.
int64_t RepeatedLoop::reaches_back() const {
  if (training_.program().trainer.automatic_optimization) {
    return 0;
  }
  const int64_t batches = training_.batches().tally().since_update().batches;
  return 1 + (level_ == period_level::batches
                  ? batches
                  : batches / std::max<int64_t>(1, training_.progress.num_batches));
}

int64_t RepeatedLoop::leave_out(int64_t pass, PeriodStart start) {
  if (pass % length() != 0 || training_.periods().have_ended()) {
    return 0;
  }
  ProgramMemory memory;
  training_.remember(memory);
  if (period_.mirrors) {
    memory.numbers.push_back(1);
  }
  start.level = level_;
  start.forgets = start.first && forgets_;
  start.first = start.first || last_ != pass - length();
  start.memory = &memory;
  start.step = training_.progress.global_step + (period_.mirrors ? pass : 0);
  start.epoch = training_.progress.epoch;
  start.steps_most = period_.steps_most;
  start.epochs = period_.epochs;
  start.reaches_back = reaches_back();
  PeriodTally& tally = training_.periods().tally(level_);
  if (!start.first) {
    tally.end();
  }
  const PeriodsLeftOut left_out = training_.rank().begins_period(start);
  if (left_out.periods > 0) {
    tally.leave_out(*left_out.repeats, pass);
  }
  tally.begin(left_out.number);
  last_ = pass + left_out.periods * length();
  return left_out.periods * length();
}

}  // namespace lockstep
