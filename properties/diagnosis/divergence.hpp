#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "properties/diagnosis/calls.hpp"
#include "properties/diagnosis/decision.hpp"

namespace lockstep {

/// The edit that would make the members' calls equal.
enum class Repair : uint8_t {
  add_calls,         ///< LS101, LS102
  exchange_calls,    ///< LS103
  change_arguments,  ///< LS104
  same_group,        ///< LS105: the groups themselves differ
  keep_rank,         ///< LS101: a rank ended by an exception, or was lost
};

/// Ranks with the same call (or none) at the place of a divergence.
struct Party {
  RankSet ranks;
  std::optional<Call> call;  ///< nothing: they make no call there
};

/// The first place where the members of one communicator do not do the same.
struct Divergence {
  std::string code;
  Repair repair = Repair::add_calls;
  uint64_t communicator = 0;
  std::string group;  ///< its label
  RankSet members;
  int64_t call = 0;            ///< place in the communicator's sequence as trained, from 0
  Call odd;                    ///< the call in question, as `caller` made it
  int32_t caller = 0;          ///< a rank that makes it
  int32_t lacker = 0;          ///< one that does not, or makes another
  std::vector<Party> parties;  ///< those who make the odd call first
  RankSet callers;
  RankSet lackers;
  int64_t calls_of_caller = 0;  ///< how often they call the odd call's statement
  int64_t calls_of_lacker = 0;
  std::optional<Decision> decision;  ///< what separated them
  bool stops = false;                ///< they left a training loop apart, by `should_stop`
  LaneId decision_lane{};
  /// The statement of the user in which the strategy makes the odd call, where lackers do not run
  /// it; none for calls at statements of their own.
  SiteId statement{};
  std::vector<Way> ways;
  /// The odd call is the strategy's, and the decision led ranks to run these of the user's
  /// statements differently: "forward", "optimizer_step". Empty: not so.
  std::vector<std::string> parted;
  /// Where the calls differ in kind or arguments, when `call` is an earlier one that the lackers
  /// left out: from there on calls are paired one turn apart. -1: at `call` itself.
  int64_t shows_at = -1;
  bool silent = false;             ///< nothing waits: the pairs complete with each other's values
  std::vector<std::string> twins;  ///< other groups that differ at the same statement alike
  std::vector<std::pair<std::string, int64_t>> echoes;  ///< groups and calls that differ after it
};

/// The first divergence of every communicator. Groups that differ alike at the same statement are
/// reported as one. One whose ranks had come past another before is an
/// echo of that and reported there, so that a defect is found once.
std::vector<Divergence> divergences_of(const RunResult& run);

/// How a rank ended: as its main program did, but stuck while any lane waits forever. A run
/// without ends has finished.
RankEnd::Kind end_of_rank(const RunResult& run, int32_t rank);

}  // namespace lockstep
