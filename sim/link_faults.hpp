#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/shared_links.hpp"
#include "sim/simulation_options.hpp"

namespace lockstep::sim {

/// Links that become slow for a while, at a time or when a rank has come to a step or an epoch.
class LinkFaults {
 public:
  /// All outlive it.
  LinkFaults(const std::vector<LinkFault>& faults, CommunicationCost& cost, SharedLinks& links,
             Agenda& agenda);

  /// At the beginning of the run: those that are there from the start begin, those at a time are
  /// put on the agenda.
  void begin();
  /// A rank whose host is at `host` has come to this position.
  void reached(const Position& position, Time host);
  /// What the agenda has come to: the fault begins or ends, unless that has been put off.
  void change(uint32_t index, bool begins);
  /// What is still to come at a time comes so much earlier on the agenda: its clock does not show
  /// what has been left out. None of it lies within that time.
  void come_earlier(Time by);

  /// Whether some fault adds to latencies.
  bool change_latencies() const { return change_latencies_; }
  /// A transfer meets the faults of its links.
  void strike(const TransferPlan& plan);
  /// LinkFault::number of those that slowed something.
  const std::set<int32_t>& struck() const { return struck_; }

 private:
  enum class State : uint8_t { waiting, scheduled, active, over };
  struct Progress {
    State state = State::waiting;
    Time due{};  ///< on the agenda: it begins where scheduled, ends where active
  };

  void put(uint32_t index, Time due, bool begins);

  const std::vector<LinkFault>& faults_;
  CommunicationCost& cost_;
  SharedLinks& links_;
  Agenda& agenda_;
  std::vector<Progress> progress_;  ///< by fault
  int64_t active_ = 0;
  bool change_latencies_ = false;
  std::set<int32_t> struck_;
};

}  // namespace lockstep::sim
