#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/program/run.hpp"
#include "sim/any_source.hpp"
#include "sim/channels.hpp"
#include "sim/in_flight.hpp"
#include "sim/transfer.hpp"

namespace lockstep::sim {

/// Point-to-point messages of the simulated world: matched per ordered pair and tag in the order of
/// their submission.
class Messages {
 public:
  /// All outlive them. They write to `ranks_differ` why the classes of `options` do not hold.
  Messages(const RunOptions& options, const SimulationOptions& simulation,
           std::vector<RankState>& ranks, InFlight& in_flight, Agenda& agenda,
           std::string& ranks_differ);

  /// At submission: the k-th send of a pair meets its k-th receive. Throws ProgramException where
  /// the backend has no receive from any source.
  void post(uint32_t index);
  /// All that a send or a receive comes behind is known. What moves, once both sides are ready;
  /// where their sizes do not fit neither gets on.
  std::optional<Transfer> ready(uint32_t index);
  /// The message has moved.
  void deliver(const Transfer& message, Time finish);

  /// The agenda has come to a receive from any source of this rank, or to a send that one may take.
  std::vector<Transfer> match_any_source(uint32_t destination);
  /// The world is idle: one of the receives that take messages last takes one. None: none may.
  std::optional<Transfer> match_held();

 private:
  friend class WorldState;

  bool is_between_neighbours(const Part& part) const;
  void leave_eagerly(uint32_t index);
  std::optional<Transfer> transfer_of(const AnySource::Match& match);

  const RunOptions& options_;
  bool any_source_last_;
  std::vector<RankState>& ranks_;
  InFlight& in_flight_;
  Agenda& agenda_;
  std::string& ranks_differ_;
  Channels channels_;
  /// What eager sends took along, by their part; of some that failed as well.
  std::unordered_map<uint32_t, Values> captured_;
  AnySource any_source_;
};

}  // namespace lockstep::sim
