#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "model/program/journal.hpp"
#include "model/program/run.hpp"
#include "sim/state_words.hpp"
#include "sim/submission_history.hpp"
#include "sim/world_state.hpp"

namespace lockstep::sim {

/// Loops whose periods repeat. When rank 0 begins a period and the whole world is in the state in
/// which it was some periods ago, but for the time that has passed, then it comes back to that
/// state again and again while the programs go on alike: such cycles are counted and not simulated.
class Periods {
 public:
  /// What the world is made of, the options and the journal outlive it; `journal` may be null.
  Periods(const RunOptions& options, const WorldParts& world, Journal* journal)
      : options_(options), world_(world), journal_(journal) {}

  /// A program that goes on alike may still have changed, as DDP does once it has seen the order of
  /// gradients: two cycles must have submitted the same before a third is believed to.
  static void note_submitted(RankState& rank, const Op& op);
  /// Lane 0 of a rank begins one. How many of those that come next it is to leave out.
  int64_t begin(RankState& rank, const PeriodStart& start);

 private:
  /// The world when rank 0 began a period.
  struct KnownState {
    StateWords words;                          ///< empty: the world does not come back to it
    std::vector<int64_t> periods;              ///< that each rank had begun
    std::vector<SubmissionHistory> submitted;  ///< by rank
    Time time{};
  };

  void find_cycle(int32_t level);
  /// `cycle_before`: where the cycle that ended with `before` had begun.
  bool is_cycle(int32_t level, const KnownState& cycle_before, const KnownState& before,
                const KnownState& now) const;
  int64_t count_period(RankState& rank, int32_t level);

  const RunOptions& options_;
  WorldParts world_;
  Journal* journal_;
  std::array<std::deque<KnownState>, period_levels> known_states_;  ///< by level, the newest first
};

}  // namespace lockstep::sim
