#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/channels.hpp"
#include "sim/in_flight.hpp"
#include "sim/simulation_options.hpp"

namespace lockstep::sim {

/// Receives from any source, the sends that they may take, and which of these each takes.
class AnySource {
 public:
  /// All outlive it.
  AnySource(const SimulationOptions& simulation, std::vector<RankState>& ranks, InFlight& in_flight,
            Agenda& agenda, Channels& channels);

  /// Parts that have found each other.
  struct Match {
    uint32_t send = no_index;
    uint32_t receive = no_index;
  };

  /// At submission.
  void post_receive(uint32_t receive);
  /// All that it comes behind is known: from its time on it can be matched.
  void receive_is_ready(uint32_t receive);
  /// The same of a send that has no partner yet.
  void send_is_ready(uint32_t send);
  /// A receive of this rank that names its source has taken the send.
  void forget_send(uint32_t destination, uint32_t send);
  bool is_empty() const;

  /// The agenda has come to a time when a send to this rank, or its own open receive, became ready.
  std::vector<Match> match(uint32_t destination);
  /// The same where receives take messages last: no match before match_held().
  void hold(uint32_t destination) { held_.insert(destination); }
  /// The world is otherwise idle. None where no receive may take anything.
  std::optional<Match> match_held();

 private:
  struct HeldReceive {
    size_t place = 0;                  ///< among the open receives of its rank
    std::vector<uint32_t> candidates;  ///< empty: there is none
  };

  std::vector<uint32_t> candidates_of(uint32_t destination, const Part& receive);
  HeldReceive held_receive_of(uint32_t destination);
  size_t take_choice(size_t ways);
  Match take(uint32_t destination, size_t place, uint32_t send);
  Channel& channel(uint32_t communicator, uint32_t destination, const Part& send);

  const SimulationOptions& simulation_;
  std::vector<RankState>& ranks_;
  InFlight& in_flight_;
  Agenda& agenda_;
  Channels& channels_;
  std::map<uint32_t, std::vector<uint32_t>> receives_;         ///< by rank
  std::map<uint32_t, std::vector<uint32_t>> unmatched_sends_;  ///< by destination, ready ones
  size_t turn_ = 0;                                            ///< the number of the next choice
  std::set<uint32_t> held_;  ///< ranks whose receives take a message last
  /// By rank: sends that it might have taken when another rank's receive went first.
  std::map<uint32_t, std::set<std::pair<uint32_t, Time>>> passed_over_;
};

}  // namespace lockstep::sim
