#include "model/strategy/pipeline/passages.hpp"

#include <set>

namespace lockstep {

namespace {

// Of some steps; `neighbours`: also what a computation may ask of the stages beside its own.
std::set<PassageKey> named_in(std::span<const PipelineStep> steps, int32_t neighbours) {
  std::set<PassageKey> named;
  for (const PipelineStep& step : steps) {
    if (step.kind == PipelineStep::Kind::compute) {
      const int32_t stage = step.action.stage;
      for (int32_t of = stage - neighbours; of <= stage + neighbours; ++of) {
        named.emplace(of, step.action.micro_batch);
      }
    }
    for (const PipelineMessage& message : step.messages) {
      named.emplace(message.stage, message.micro_batch);
    }
  }
  return named;
}

}  // namespace

void release_output(Rank& rank, Passage& passage, bool has_values) {
  const Slice output = std::exchange(passage.output, {});
  if (!has_values && output.buffer != no_buffer) {
    rank.release(output);
  }
}

void Passages::remember(ProgramMemory& memory) const {
  for (const auto& [key, passage] : all_) {
    if (passage.arriving) {
      memory.tickets.push_back(passage.arriving);
    }
  }
  for (const SentMessages& sent : begun_sends_) {
    memory.tickets.push_back(sent.done);
  }
}

// Those that something was done for, and something is still to be done for. What is received may
// stay in the same memory for each batch, so they change places.
void Passages::rename(std::span<const PipelineStep> steps, size_t at, int32_t later) {
  const std::set<PassageKey> before = named_in(steps.first(at), 0);
  const std::set<PassageKey> behind = named_in(steps.subspan(at), 1);
  for (auto key = before.rbegin(); key != before.rend(); ++key) {  // the latest first
    if (behind.contains(*key)) {
      std::swap(all_[*key], all_[{key->first, key->second + later}]);
    }
  }
  for (SentMessages& sent : begun_sends_) {
    for (PassageKey& key : sent.activations) {
      key.second += later;
    }
  }
}

}  // namespace lockstep
