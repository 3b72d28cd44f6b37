#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/program/journal.hpp"
#include "model/program/run.hpp"
#include "sim/communicators.hpp"
#include "sim/in_flight.hpp"
#include "sim/transfer.hpp"

namespace lockstep::sim {

/// Collectives of the simulated world: matched by position within a communicator, never by name.
class Collectives {
 public:
  /// What they work on outlives them; `journal` may be null. They write to `ranks_differ` why the
  /// classes of `options` do not hold.
  Collectives(const RunOptions& options, std::vector<RankState>& ranks, InFlight& in_flight,
              Communicators& communicators, Journal* journal, std::string& ranks_differ);

  /// At submission: gives the call its place among those of its communicator.
  static void enter(RankState& rank, Part& part);
  /// All that this member's call comes behind is known. What the call moves, once all members have
  /// come to it and fit; those of a call that does not fit never get on.
  std::optional<Transfer> arrive(uint32_t index);
  /// The call of these parts has moved its content: its results are there, or the groups it makes.
  void complete(const Transfer& call, Time finish);

 private:
  bool fits(const CallSlot& call);
  bool amounts_fit(const CallSlot& call, const std::vector<int32_t>& members);
  /// Of a call that all have entered, the part of each member, or of the rank that stands for it.
  std::vector<uint32_t> parts_by_member(uint32_t first, const std::vector<int32_t>& members);
  uint32_t members_of(const Part& part) const;
  bool is_alone(int32_t rank, const CallSlot& call);
  void exchange_values(const std::vector<uint32_t>& by_member, const std::vector<int32_t>& members);
  void make_groups(const std::vector<uint32_t>& by_member, const Communicator& parent);
  GroupState group_state(const RankState& rank, uint32_t communicator, int32_t member);
  void retire_calls(Communicator& communicator);

  const RunOptions& options_;
  std::vector<RankState>& ranks_;
  InFlight& in_flight_;
  Communicators& communicators_;
  Journal* journal_;
  std::string& ranks_differ_;
};

}  // namespace lockstep::sim
