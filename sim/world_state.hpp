#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/communicators.hpp"
#include "sim/in_flight.hpp"
#include "sim/messages.hpp"
#include "sim/shared_links.hpp"
#include "sim/state_words.hpp"
#include "sim/transfers.hpp"

namespace lockstep::sim {

/// What a simulated world is made of.
struct WorldParts {
  std::vector<RankState>& ranks;
  Agenda& agenda;
  InFlight& in_flight;
  Communicators& communicators;
  Messages& messages;
  Transfers& transfers;
  SharedLinks& links;
};

/// All that decides what a simulated world will do, given what its programs submit: times relative
/// to rank 0's host, tickets relative to the last of their lane, calls relative to those of their
/// communicator. Two worlds with the same description whose programs go on alike stay alike.
class WorldState {
 public:
  explicit WorldState(const WorldParts& world) : world_(world) {}

  /// Asked while rank 0's lane 0 runs; behind the words that are there. False: something is under
  /// way that this does not describe.
  bool describe(int32_t level, StateWords& words);

 private:
  void add(int64_t word) { words_->add(word); }
  void add(Time time) { add((time - origin_).count()); }
  void add_bits(double number);
  /// Lists that follow each other must not be taken for one.
  void end_list() { words_->end_list(); }
  void add_part(uint32_t index);
  void add_ticket(const RankState& rank, Ticket ticket);
  bool add_rank(const RankState& rank, int32_t level);
  void add_place(const RankState& rank, int32_t level);
  static bool has_clocks_apart(const RankState& rank);
  Time clock_of(const RankState& rank, const LaneState& lane) const;
  Time earliest_clock(const RankState& rank) const;
  bool is_past(const RankState& rank, Ticket ticket) const;
  static std::optional<int64_t> promise_of(const RankState& rank, Ticket ticket);
  bool add_described(const RankState& rank, const LaneState& lane,
                     const DescribedLane& description);
  void add_lane(const RankState& rank, const LaneState& lane);
  void add_tickets(const RankState& rank, const LaneState& lane, Time host);
  void add_streams(const RankState& rank, Time host);
  void add_launched(const LaunchQueue& launched, Time host);
  void add_beside(const BesideKernels& beside);
  void add_memory(const BufferTable& buffers);
  void add_calls(const Communicator& communicator);
  void add_messages();
  void add_transfer(uint32_t index);
  bool add_event(const Agenda::Entry& event);
  void add_flows();

  WorldParts world_;
  StateWords* words_ = nullptr;
  Time origin_{};
  std::vector<uint32_t> flows_;                       ///< under way, in the order of their ends
  std::unordered_map<uint32_t, int64_t> flow_place_;  ///< in flows_
  std::unordered_map<uint16_t, int64_t> counts_;      ///< LaneMemory::count of the first, by lane
};

}  // namespace lockstep::sim
