#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/site.hpp"
#include "model/core/values.hpp"

namespace lockstep::test {

/// What one step of a bare program does. Collectives first: a defect is planted in one of them.
enum class Act : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  split_group,    ///< by colour; later steps may use the group
  reverse_group,  ///< of all ranks, named one by one, last to first
  fill,
  scale,
  add,
  copy,
  copy_to_host_and_back,
  work,                ///< time on the device and on the host
  pass,                ///< one rank sends to another
  ring,                ///< every rank sends to the next one, grouped with its receive
  collect,             ///< rank 0 receives from whoever comes, once from each other rank
  grouped_reductions,  ///< two all_reduces as one call
  helper_lane,         ///< a second lane computes and hands over by promises
  settle,
  settle_any,
  read,
  branch,  ///< on a value that all ranks share: skips steps or not
  renew,   ///< releases a buffer and allocates another
};
inline constexpr int32_t act_count = 27;
inline constexpr int32_t collective_count = 11;
constexpr bool is_collective(Act act) { return static_cast<int32_t>(act) < collective_count; }

inline constexpr std::array<std::string_view, act_count> act_names{"all_reduce",
                                                                   "reduce",
                                                                   "broadcast",
                                                                   "all_gather",
                                                                   "gather",
                                                                   "scatter",
                                                                   "reduce_scatter",
                                                                   "all_to_all",
                                                                   "barrier",
                                                                   "split_group",
                                                                   "reverse_group",
                                                                   "fill",
                                                                   "scale",
                                                                   "add",
                                                                   "copy",
                                                                   "copy_to_host_and_back",
                                                                   "work",
                                                                   "pass",
                                                                   "ring",
                                                                   "collect",
                                                                   "grouped_reductions",
                                                                   "helper_lane",
                                                                   "settle",
                                                                   "settle_any",
                                                                   "read",
                                                                   "branch",
                                                                   "renew"};

/// Numbers are small and taken modulo what there is.
struct Step {
  Act act = Act::barrier;
  int32_t buffer = 0;
  int32_t other = 0;  ///< the second buffer is one of the others
  int32_t group = 0;
  int32_t number = 0;  ///< root, colour, factor, ..
  Reduction reduction = Reduction::sum;
};

/// What is wrong on one rank, at one of the collective steps.
enum class Flaw : uint8_t {
  none,
  missing,   ///< the rank leaves it out
  repeated,  ///< the rank calls it twice
  swapped,   ///< the rank calls it after the next collective step
  other_root,
  other_size,
  other_reduction,
  raised,          ///< the rank raises instead
  uneven,          ///< the rank goes through all steps once more
  local_branch,    ///< all ranks leave it out or not by a value of their own
  released_early,  ///< all ranks release its buffer while it is in flight
};
inline constexpr int32_t flaw_count = 11;
inline constexpr std::array<std::string_view, flaw_count> flaw_names{
    "none",       "missing",      "repeated",        "swapped",
    "other_root", "other_size",   "other_reduction", "raised",
    "uneven",     "local_branch", "released_early"};

struct Defect {
  Flaw flaw = Flaw::none;
  int32_t rank = 0;
  int32_t at = 0;
};

/// One program for all ranks, as a value, and what is wrong with it.
struct BareProgram {
  int32_t ranks = 1;
  DType dtype = DType::fp32;
  bool eager = false;  ///< sends leave before they are received
  std::vector<Step> steps;
  Defect defect;
};

/// A step as one rank takes it.
struct OwnStep {
  Step step;
  SiteId site{};
  int32_t tag = 0;         ///< of its messages: the same on all ranks
  Flaw flaw = Flaw::none;  ///< what this rank does otherwise here
};

/// What the rank does, with its defect. Sites are those of the common steps.
std::vector<OwnStep> steps_of(const BareProgram& program, int32_t rank);
/// The flaw that is really there: none without a collective to plant it in, or without a partner.
Flaw planted(const BareProgram& program);

std::ostream& operator<<(std::ostream& out, const Step& step);
std::ostream& operator<<(std::ostream& out, const BareProgram& program);

}  // namespace lockstep::test
