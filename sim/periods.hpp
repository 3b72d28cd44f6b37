#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "model/program/journal.hpp"
#include "model/program/run.hpp"
#include "sim/fault_horizon.hpp"
#include "sim/known_states.hpp"
#include "sim/submission_history.hpp"
#include "sim/world_state.hpp"

namespace lockstep::sim {

/// Loops whose periods repeat. The state in which the world is when rank 0 begins a period, and the
/// kind of the period, decide in which state the next one begins. Where what is known of them leads
/// back to the present state, all periods until then are counted and not simulated.
class Periods {
 public:
  /// All outlive it; `journal` may be null.
  Periods(const RunOptions& options, const WorldParts& world, const FaultHorizon& faults,
          Journal* journal)
      : options_(options), world_(world), faults_(faults), journal_(journal) {}

  /// A program that goes on alike may still have changed, as DDP does once it has seen the order of
  /// gradients: a period must have submitted what another one of its kind did before it is believed
  /// to be what others will do.
  static void note_submitted(RankState& rank, const Op& op);
  /// Lane 0 of a rank begins one. Which of those that come next it is to leave out.
  PeriodsLeftOut begin(RankState& rank, const PeriodStart& start);
  /// Begins periods as rank 0 does from now on.
  void add_follower(RankState& rank) const;
  /// Port::ends_period_alike().
  static void end_alike(RankState& rank, int32_t level) {
    rank.loops[static_cast<size_t>(level)].kind = LoopState::any_kind;
  }

 private:
  /// Rank 0 at the beginning of the last period.
  struct Begun {
    int64_t number = 0;
    bool is_first = false;
    bool is_behind_left_out = false;  ///< periods were left out at its beginning
    std::optional<size_t> state;
    std::vector<int64_t> kinds;  ///< of this period and those that follow
    Time time{};
    std::vector<SubmissionHistory> submitted;  ///< by rank
    std::vector<int64_t> within;               ///< by rank, the period in which it is
    size_t left_out = 0;                       ///< how often rank 0 has left out periods
    int64_t ahead = 0;                         ///< as of KnownStates::Transition
    StateTrail trail;
  };
  struct Level {
    KnownStates known;
    std::optional<Begun> last;
    std::optional<size_t> planned;  ///< the state in which what is left out next will begin
    std::unordered_set<uint64_t> submitted;  ///< what a period of a kind did
  };
  /// Which periods may be left out: from the first on that no rank has begun, so that the calls of
  /// ranks still match.
  struct Room {
    int64_t from = 0;
    int64_t periods = 0;
    bool pending = false;  ///< some are to be left out already
  };

  void find_cycle(const PeriodStart& start);
  Room room_of(int32_t level, int64_t from) const;
  /// The period that has ended led from the last state to this one.
  void note_transition(Level& level, const PeriodStart& start, Begun& now, int64_t from) const;
  void leave_out(const PeriodStart& start, const Begun& now, const Room& room);
  /// Whether every rank was in periods of known kinds since then, where rank 0 was.
  bool were_of_kinds(const Begun& last, int32_t level) const;
  /// Threads beside those with loops, or ranks without loops.
  bool has_programs_beside() const;
  std::optional<KnownStates::Way> way_to_same_kind(const PeriodStart& start, const Begun& now,
                                                   Room room) const;
  /// The way to leave out as much as there is room for, before the next fault begins or ends.
  std::optional<KnownStates::Way> way_before_faults(const PeriodStart& start, const Begun& now,
                                                    const Room& room) const;
  /// How many periods come before one with which a fault begins.
  int64_t periods_before_faults(const PeriodStart& start) const;
  /// After how many more periods at most what a rank submits in one has ended.
  int64_t periods_until_ended(int32_t level) const;
  /// All that the periods that it repeats have submitted.
  bool repeats_what_has_ended(const KnownStates::Way& way, int32_t level) const;
  PeriodsLeftOut count_period(RankState& rank, const PeriodStart& start);
  void note_unfinished(const RankState& rank, LoopState& loop) const;
  static void count_as_submitted(RankState& rank, int64_t micro_batches);
  void note_left_out(RankState& rank, int32_t level, const LeftOut& left_out);

  const RunOptions& options_;
  WorldParts world_;
  const FaultHorizon& faults_;
  Journal* journal_;
  std::array<Level, period_levels> levels_;
};

}  // namespace lockstep::sim
