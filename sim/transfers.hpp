#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/communicators.hpp"
#include "sim/in_flight.hpp"
#include "sim/index_list.hpp"
#include "sim/link_faults.hpp"
#include "sim/shared_links.hpp"
#include "sim/transfer.hpp"

namespace lockstep::sim {

/// Transfers and what they take: over links that may be shared, and between the devices of one
/// rank.
class Transfers {
 public:
  /// What they move, and over what; all outlives them. `in_classes`: ranks stand for others, and
  /// times matter; then they write to `ranks_differ` why these would not do the same.
  struct World {
    std::vector<RankState>& ranks;
    InFlight& in_flight;
    Communicators& communicators;
    CommunicationCost& cost;
    SharedLinks& links;
    LinkFaults& faults;
    Agenda& agenda;
    bool in_classes;
    std::string& ranks_differ;
  };
  explicit Transfers(const World& world) : world_(world) {}

  struct Ended {
    Transfer transfer;
    Time finish{};
  };

  /// When it ends, if that is known at once; else the agenda will come to its start.
  std::optional<Time> begin(const Transfer& transfer);
  /// The agenda has come to the start of one: only where it now ends at once does it say so.
  std::optional<Ended> start(uint32_t index);
  /// The agenda has come to the end of a flow: the transfer that it ends, if it has not been
  /// foretold anew.
  std::optional<Ended> finish_flow(uint32_t flow, uint32_t generation);

 private:
  friend class WorldState;

  struct Planned {
    Transfer transfer;
    TransferPlan plan;
    bool is_planned = false;  ///< `plan` is right
  };

  TransferPlan plan_of(const Transfer& transfer);
  bool stands_for_others(const Transfer& transfer);
  void put_on_agenda(const Planned& planned);

  World world_;
  std::vector<Planned> planned_;  ///< by index; those that have not started, or are on their way
  IndexList free_;                ///< indices of these
  std::vector<uint32_t> of_flow_;
};

}  // namespace lockstep::sim
