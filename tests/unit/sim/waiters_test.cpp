// Who waits for a ticket.
#include "sim/waiters.hpp"

#include <catch2/catch.hpp>
#include <vector>

namespace waiters_test {

using namespace lockstep;
using sim::no_index;
using sim::Waiters;

namespace {

Program nothing() { co_return; }

std::vector<Waiters::Waiter> all_of(Waiters& waiters, const sim::TicketState& ticket) {
  std::vector<Waiters::Waiter> all;
  for (uint32_t node = ticket.waiters; node != no_index; node = waiters[node].next) {
    all.push_back(waiters[node]);
  }
  return all;
}

}  // namespace

TEST_CASE("whoever comes last to a ticket stands in front") {
  Waiters waiters;
  sim::TicketState ticket;
  waiters.add_part(ticket, 0, 11, Waiters::Order::after);
  waiters.add_part(ticket, 1, 12, Waiters::Order::stream);
  const std::vector<Waiters::Waiter> all = all_of(waiters, ticket);
  REQUIRE(all.size() == 2);
  CHECK(all[0].target == 12);
  CHECK(all[0].generation == static_cast<uint32_t>(Waiters::Order::stream));
  CHECK(all[1].target == 11);
  CHECK(!all[1].is_lane);
}

TEST_CASE("only what an older wait of the same lane has left is forgotten") {
  Waiters waiters;
  sim::TicketState ticket;
  sim::LaneState lane(RankId{0}, 0, LaneId{0}, nothing());
  sim::LaneState other(RankId{0}, 0, LaneId{1}, nothing());
  lane.generation = 1;
  waiters.add_lane(ticket, lane);
  waiters.add_lane(ticket, other);
  waiters.add_part(ticket, 0, sim::index_of(lane), Waiters::Order::after);
  lane.generation = 2;
  waiters.add_lane(ticket, lane);
  const size_t known = waiters.size();
  waiters.forget_stale(ticket, lane);
  const std::vector<Waiters::Waiter> all = all_of(waiters, ticket);
  REQUIRE(all.size() == 3);
  CHECK((all[0].is_lane && all[0].generation == 2));
  CHECK(!all[1].is_lane);
  CHECK((all[2].is_lane && all[2].target == sim::index_of(other)));
  waiters.add_part(ticket, 0, 13, Waiters::Order::after);
  CHECK(waiters.size() == known);  // its place is used again
}

}  // namespace waiters_test
