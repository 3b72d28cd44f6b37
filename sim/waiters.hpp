#pragma once

#include <cstdint>

#include "sim/local_places.hpp"
#include "sim/rank_state.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

/// Who waits for tickets whose end is not known yet: of each ticket a list, whoever came last in
/// front.
class Waiters {
 public:
  /// How a part comes behind a ticket: only `after` it does it fail with it.
  enum class Order : uint32_t { after, stream };

  struct Waiter {
    uint32_t next = no_index;
    uint32_t target = 0;      ///< part, or lane as in index_of()
    uint32_t generation = 0;  ///< of the lane; of a part: its Order
    bool is_lane = false;
  };

  /// `rank`: the index of the rank that the part is of.
  void add_part(TicketState& ticket, uint32_t rank, uint32_t part, Order order) {
    add(ticket, rank, {ticket.waiters, part, static_cast<uint32_t>(order), false});
  }
  void add_lane(TicketState& ticket, const LaneState& lane) {
    add(ticket, lane.rank_index, {ticket.waiters, index_of(lane), lane.generation, true});
  }
  /// A wait for any of several tickets leaves its mark on those that did not settle; a loop of such
  /// waits would leave one each time.
  void forget_stale(TicketState& ticket, const LaneState& lane) {
    uint32_t* link = &ticket.waiters;
    while (*link != no_index) {
      const uint32_t node = *link;
      const Waiter& waiter = nodes_[node];
      if (waiter.is_lane && waiter.target == index_of(lane) &&
          waiter.generation != lane.generation) {
        *link = waiter.next;
        nodes_.give_back(lane.rank_index, node);
      } else {
        link = &nodes_[node].next;
      }
    }
  }

  Waiter& operator[](uint32_t node) { return nodes_[node]; }
  /// The waiter need not be known any more. `rank`: as when it was added.
  void give_back(uint32_t rank, uint32_t node) { nodes_.give_back(rank, node); }
  size_t size() const { return nodes_.size(); }

 private:
  void add(TicketState& ticket, uint32_t rank, const Waiter& waiter) {
    const uint32_t node = nodes_.take(rank);
    nodes_[node] = waiter;
    ticket.waiters = node;
  }

  LocalPlaces<Waiter> nodes_;
};

}  // namespace lockstep::sim
