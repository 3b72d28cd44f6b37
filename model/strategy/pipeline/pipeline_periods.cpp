// What the world leaves out of a step: micro-batches that repeat those before them.
#include "model/core/random.hpp"
#include "model/strategy/pipeline/pipeline.hpp"

namespace lockstep {

namespace {

/// Steps of one kind send every micro-batch the same way.
int64_t kind_of(const StepOptions& options) {
  uint64_t kind = random_key(options.synchronise ? 1 : 0, options.modules.size());
  for (const size_t module : options.modules) {
    kind = random_key(kind, module);
  }
  kind = random_key(kind, options.skipped_layers.size());
  for (const size_t layer : options.skipped_layers) {
    kind = random_key(kind, layer);
  }
  kind = random_key(kind, options.only_optimizer ? *options.only_optimizer + 1 : 0);
  return static_cast<int64_t>(kind >> 1);
}

}  // namespace

// Gives the step with which it goes on. Where whole periods are left out, the next one is of later
// micro-batches.
size_t Pipeline::behind_left_out(Rank& rank, const std::vector<PipelineStep>& steps, size_t at,
                                 const MicroBatchPeriods& periods, const StepOptions& options) {
  ProgramMemory memory;
  passages_.remember(memory);
  PeriodStart start;
  start.level = period_level::micro_batches;
  start.first = at == periods.begin;
  start.alike = periods.left_from(at);
  start.kind = kind_of(options);
  start.memory = &memory;
  const int64_t left_out = rank.begins_period(start).periods;
  if (left_out > 0) {
    const auto later = static_cast<int32_t>(left_out * periods.micro_batches);
    transfers_.repeat_period(left_out);
    for (auto& [stage, backwards] : backwards_left_) {
      backwards -= later;
    }
    passages_.rename(steps, at, later);
    rename_micro_batches(later);
  }
  transfers_.begin_period();
  return at + static_cast<size_t>(left_out) * periods.length;
}

}  // namespace lockstep
