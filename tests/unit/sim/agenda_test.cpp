// What time it is in the simulated world, and what comes next.
#include "sim/agenda.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <utility>
#include <vector>

namespace agenda_test {

using namespace lockstep;
using namespace lockstep::literals;
using sim::Agenda;

TEST_CASE("an agenda gives the earliest first, of equal times what was pushed first") {
  Agenda agenda(std::nullopt);
  agenda.push(2_us, Agenda::Kind::lane, 7, 3);
  agenda.push(1_us, Agenda::Kind::flow_start, 8);
  agenda.push(2_us, Agenda::Kind::any_source, 9);
  CHECK(agenda.now() == Time{});
  const Agenda::Entry first = agenda.pop();
  CHECK(first.kind == Agenda::Kind::flow_start);
  CHECK(first.index == 8);
  CHECK(agenda.now() == 1_us);
  const std::vector<Agenda::Entry> left = agenda.in_order();
  REQUIRE(left.size() == 2);
  CHECK(left[0].kind == Agenda::Kind::lane);
  CHECK(left[0].index == 7);
  CHECK(left[1].kind == Agenda::Kind::any_source);
  CHECK(agenda.now() == 1_us);  // looking at what comes takes no time
  agenda.pop();
  agenda.pop();
  CHECK(agenda.empty());
  CHECK(agenda.now() == 2_us);
}

TEST_CASE("what waits for all else of its time comes behind what is pushed later") {
  Agenda agenda(std::nullopt);
  agenda.push_last(2_us, Agenda::Kind::lane, 9);
  agenda.push(2_us, Agenda::Kind::lane, 1);
  agenda.push_last(2_us, Agenda::Kind::lane, 4);
  agenda.push(3_us, Agenda::Kind::lane, 2);
  CHECK(agenda.pop().index == 1);
  agenda.push(2_us, Agenda::Kind::flow_start, 3);  // at the present time
  CHECK(agenda.pop().index == 3);
  CHECK(agenda.pop().index == 4);  // not in the order in which they were pushed
  CHECK(agenda.pop().index == 9);
  CHECK(agenda.pop().index == 2);
  CHECK(agenda.empty());
}

TEST_CASE("what waits for all else of its time does so in every drawn order") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Agenda agenda(seed);
    agenda.push_last(2_us, Agenda::Kind::lane, 9);
    agenda.push(2_us, Agenda::Kind::lane, 1);
    agenda.push(2_us, Agenda::Kind::lane, 2);
    agenda.pop();
    agenda.pop();
    CHECK(agenda.pop().index == 9);
  }
}

TEST_CASE("an agenda of many things at few times gives them in the order of a sorted list") {
  std::mt19937 random(5);
  Agenda agenda(std::nullopt);
  std::vector<std::pair<Time, uint32_t>> pending;  // by time, then as they were pushed
  for (uint32_t pushed = 0; pushed < 3'000; ++pushed) {
    const Time time = agenda.now() + 1_us * static_cast<int64_t>(random() % 12);
    agenda.push(time, Agenda::Kind::lane, pushed);
    pending.insert(std::ranges::upper_bound(pending, std::pair(time, pushed)), {time, pushed});
    // Now and then all but a few of them.
    const size_t kept = pushed % 500 == 499 ? random() % 9 : pending.size() - random() % 2;
    while (pending.size() > kept) {
      const Agenda::Entry next = agenda.pop();
      REQUIRE(next.time == pending.front().first);
      REQUIRE(next.index == pending.front().second);
      pending.erase(pending.begin());
    }
  }
  CHECK(agenda.empty() == pending.empty());
}

// Of eight events one order in 40,320 is that in which they were pushed.
TEST_CASE("an agenda draws the order of what happens at the same time, up to a time") {
  Agenda agenda(3, 5_us);
  const auto order_at = [&agenda](Time time) {
    for (uint32_t index = 0; index < 8; ++index) {
      agenda.push(time, Agenda::Kind::lane, index);
    }
    std::vector<uint32_t> order;
    while (!agenda.empty()) {
      order.push_back(agenda.pop().index);
    }
    return order;
  };
  const std::vector<uint32_t> as_pushed = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(agenda.draws());
  const std::vector<uint32_t> drawn = order_at(4_us);
  CHECK(drawn != as_pushed);
  CHECK(std::ranges::is_permutation(drawn, as_pushed));
  CHECK(agenda.draws());
  CHECK(order_at(5_us) == as_pushed);
  CHECK_FALSE(agenda.draws());
  CHECK_FALSE(Agenda(std::nullopt).draws());
}

TEST_CASE("an entry of an agenda knows its generation by 28 bits") {
  Agenda agenda(std::nullopt);
  constexpr uint32_t later = 1u << 28;
  agenda.push(1_us, Agenda::Kind::lane, 0xffffffffu, later + 5);
  const Agenda::Entry entry = agenda.pop();
  CHECK(entry.kind == Agenda::Kind::lane);
  CHECK(entry.index == 0xffffffffu);
  CHECK(entry.is_of(later + 5));
  CHECK(entry.is_of(5));
  CHECK(!entry.is_of(6));
}

TEST_CASE("an agenda remembers how long the world lasts") {
  Agenda agenda(std::nullopt);
  agenda.lasts_until(3_us);
  agenda.lasts_until(2_us);
  CHECK(agenda.latest() == 3_us);
  CHECK(agenda.now() == Time{});
}

}  // namespace agenda_test
