#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/pipeline/pipeline_steps.hpp"

namespace lockstep {

/// A micro-batch in a stage of this rank: what it got, and what it will be asked for.
struct Passage {
  int64_t forward = 0;                ///< ForwardHistory::last()
  std::optional<Slice> activation{};  ///< received for it
  std::optional<Slice> gradient{};    ///< of its output, received
  Ticket arriving{};                  ///< either of them, which its next computation needs
  Slice output{};                     ///< what the next stage gets
  Slice input_gradient{};             ///< what the stage before gets
};
using PassageKey = std::pair<int32_t, int32_t>;  ///< stage, micro-batch

/// Frees it. With values it is a tensor of the forward, which does so.
void release_output(Rank& rank, Passage& passage, bool has_values);

/// Messages under way, and memory that is freed behind them.
struct SentMessages {
  Ticket done{};
  std::vector<Slice> gradients{};
  std::vector<PassageKey> activations{};
};

/// The micro-batches of one rank, and the sends that its schedule has begun and not waited for.
class Passages {
 public:
  using Map = std::map<PassageKey, Passage>;

  Passage& operator[](const PassageKey& key) { return all_[key]; }
  Map::iterator find(const PassageKey& key) { return all_.find(key); }
  void erase(Map::iterator passage) { all_.erase(passage); }
  Map::iterator begin() { return all_.begin(); }
  Map::iterator end() { return all_.end(); }

  void begin_sends(SentMessages sent) { begun_sends_.push_back(std::move(sent)); }
  std::vector<SentMessages> take_sends() { return std::exchange(begun_sends_, {}); }

  /// Adds what later operations will come after.
  void remember(ProgramMemory& memory) const;
  /// Those under way become so many micro-batches later. `steps`: of the rank, of which it has
  /// taken those before `at`.
  void rename(std::span<const PipelineStep> steps, size_t at, int32_t later);

 private:
  Map all_;
  std::vector<SentMessages> begun_sends_;
};

}  // namespace lockstep
