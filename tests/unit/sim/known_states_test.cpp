// States of a world and what leads from one to the other.
#include "sim/known_states.hpp"

#include <catch2/catch.hpp>

namespace lockstep::sim::known_states_test {
namespace {

StateWords words(int64_t number) {
  StateWords words;
  words.add(number);
  return words;
}

KnownStates::Transition transition(std::vector<int64_t> kinds, size_t to, bool is_proven = true) {
  return {std::move(kinds), to, 0, 0, {}, 5_us, false, is_proven};
}

class Kinds final : public PeriodKinds {
 public:
  explicit Kinds(std::vector<int64_t> kinds) : kinds_(std::move(kinds)) {}
  int64_t kind_of(int64_t period) const override { return kinds_[static_cast<size_t>(period)]; }
  int64_t alike_from(int64_t period) const override {
    int64_t end = period;
    while (end < std::ssize(kinds_) && kind_of(end) == kind_of(period)) {
      ++end;
    }
    return end - period;
  }
  int64_t size() const { return std::ssize(kinds_); }

 private:
  std::vector<int64_t> kinds_;
};

std::optional<KnownStates::Way> way_of_kinds(const KnownStates& known, size_t from,
                                             std::vector<int64_t> all, int64_t before,
                                             int64_t most) {
  const Kinds kinds(std::move(all));
  PeriodStart start;
  start.alike = kinds.size();
  start.kinds = &kinds;
  return known.way(from, start, before, most);
}

std::optional<KnownStates::Way> way_of_one_kind(const KnownStates& known, size_t from,
                                                int64_t before, int64_t most,
                                                const StateTrail& trail = {}) {
  PeriodStart start;
  start.alike = before + most + 1;
  start.kind = 7;
  return known.way(from, start, before, most, trail);
}

int64_t transitions(const std::vector<KnownStates::Way::Taken>& all) {
  int64_t transitions = 0;
  for (const KnownStates::Way::Taken& each : all) {
    transitions += each.times;
  }
  return transitions;
}

TEST_CASE("a state has the same number whenever the world comes back to it") {
  KnownStates known;
  const size_t first = known.number_of(words(1));
  const size_t second = known.number_of(words(2));
  CHECK(first != second);
  CHECK(known.number_of(words(1)) == first);
  CHECK(known.number_of(words(2)) == second);
}

TEST_CASE("periods of one kind are left out in whole cycles") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  known.note(a, transition({7}, b));
  CHECK(!way_of_one_kind(known, a, 0, 5));
  known.note(b, transition({7}, a));
  const auto way = way_of_one_kind(known, a, 0, 5);
  REQUIRE(way);
  CHECK(way->periods == 2);
  CHECK(way->turns == 2);  // the fifth does not lead back
  CHECK(!way_of_one_kind(known, a, 0, 1));
}

TEST_CASE("a cycle may begin behind periods that some rank has begun") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  known.note(a, transition({7}, b));
  known.note(b, transition({7}, b));
  CHECK(!way_of_one_kind(known, a, 0, 9));
  const auto way = way_of_one_kind(known, a, 1, 9);
  REQUIRE(way);
  CHECK(transitions(way->before) == 1);
  CHECK(way->periods == 9);
  CHECK(transitions(way->cycle) == 9);
  CHECK(way->turns == 1);
}

TEST_CASE(
    "of periods of several kinds those are left out that are known, as far as they lead back") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  known.note(a, transition({1}, a));
  known.note(a, transition({2}, b));
  known.note(b, transition({1}, a));
  const auto way = way_of_kinds(known, a, {1, 2, 1, 2, 3, 1}, 0, 6);
  REQUIRE(way);
  CHECK(way->periods == 3);  // 1, 2, 1; the next leads to b, and what 3 does is not known
  CHECK(transitions(way->cycle) == 3);
  CHECK(!way_of_kinds(known, a, {3, 1}, 0, 2));
}

// What that rank did of a period before rank 0 began it came of the period before.
TEST_CASE("where a rank is ahead of rank 0, a period is repeated behind those it came behind") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  StateTrail from_b;
  from_b.add(KnownStates::key_of(b, {7}));
  StateTrail from_a;
  from_a.add(KnownStates::key_of(a, {7}));
  KnownStates::Transition first = transition({7}, a);
  first.number = 1;
  first.ahead = 1;
  first.came_by = from_b.last(1);
  known.note(b, transition({7}, a));
  known.note(a, first);
  CHECK(!way_of_one_kind(known, a, 1, 9, from_b));  // the rank that is ahead has begun one
  KnownStates::Transition second = first;
  second.number = 2;
  second.came_by = from_a.last(1);
  known.note(a, second);
  const auto way = way_of_one_kind(known, a, 1, 9, from_b);
  REQUIRE(way);
  CHECK(way->periods * way->turns == 9);
  CHECK(way->cycle.front().transition->number == 2);
}

TEST_CASE("transitions of one state by several trails lead to the same, or none is believed") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  StateTrail trail;
  trail.add(KnownStates::key_of(a, {7}));
  KnownStates::Transition ahead = transition({7}, a);
  ahead.ahead = 1;
  ahead.came_by = trail.last(1);
  known.note(a, ahead);
  CHECK(way_of_one_kind(known, a, 1, 9, trail));
  ahead.to = b;
  ahead.came_by = 0;
  known.note(a, ahead);
  CHECK(!way_of_one_kind(known, a, 1, 9, trail));
}

TEST_CASE("of many trails to one state the first are forgotten") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  StateTrail trail;
  trail.add(KnownStates::key_of(a, {7}));
  KnownStates::Transition ahead = transition({7}, a);
  ahead.ahead = 1;
  ahead.came_by = trail.last(1);
  known.note(a, ahead);
  for (uint64_t other = 1; other < 64; ++other) {
    ahead.came_by = other;
    known.note(a, ahead);
  }
  CHECK(way_of_one_kind(known, a, 1, 9, trail));
  ahead.came_by = 64;
  known.note(a, ahead);
  CHECK(!way_of_one_kind(known, a, 1, 9, trail));
}

TEST_CASE("a trail knows its last transitions in their order") {
  StateTrail trail;
  CHECK(trail.last(0) == uint64_t{0});
  CHECK_FALSE(trail.last(1));
  StateTrail other;
  for (const uint64_t each : {1, 2, 3}) {
    trail.add(each);
    other.add(each == 1 ? 9 : each);
  }
  CHECK(trail.last(2) == other.last(2));
  CHECK(trail.last(3) != other.last(3));
  for (int64_t each = 0; each < StateTrail::kept; ++each) {
    trail.add(1);
  }
  CHECK(trail.last(StateTrail::kept));
  CHECK_FALSE(trail.last(StateTrail::kept + 1));
}

TEST_CASE("what some rank had begun of the next period decides as well") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  known.note(a, transition({1, 1}, a));
  CHECK(way_of_kinds(known, a, {1, 1, 1, 2}, 0, 3)->periods == 2);
  CHECK(!way_of_kinds(known, a, {1, 2}, 0, 2));
  CHECK(!way_of_kinds(known, a, {1}, 0, 1));  // what follows has no known kind
}

TEST_CASE("only what has been seen to repeat is believed, and nothing that contradicts itself") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  const size_t b = known.number_of(words(2));
  known.note(a, transition({7}, a, false));
  CHECK(!way_of_one_kind(known, a, 0, 5));
  known.note(a, transition({7}, a));
  CHECK(way_of_one_kind(known, a, 0, 5));
  known.note(a, transition({7}, b));
  CHECK(!way_of_one_kind(known, a, 0, 5));
}

TEST_CASE("a state that stays as it is is taken in one go, until another kind comes") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  known.note(a, transition({1, 1}, a));
  known.note(a, transition({1, 2}, a));
  known.note(a, transition({2, 1}, a));
  const auto way = way_of_kinds(known, a, {1, 1, 1, 1, 1, 2, 1, 1, 1}, 0, 8);
  REQUIRE(way);
  CHECK(way->periods == 8);
  REQUIRE(way->cycle.size() == 4);
  CHECK(way->cycle[0].times == 4);  // of the fifth, the next is of the other kind
  CHECK(way->cycle[3].times == 2);  // the last does not know what follows
}

TEST_CASE("of many states those are forgotten that have not come for long") {
  KnownStates known;
  const size_t old = known.number_of(words(-1));
  const size_t kept = known.number_of(words(-2));
  for (int64_t number = 0; number < 1000; ++number) {
    CHECK(known.number_of(words(number)) != old);
    CHECK(known.number_of(words(-2)) == kept);
  }
  CHECK(known.number_of(words(-1)) != old);
  known.note(old, transition({7}, old));  // what is said of it is not kept
  CHECK(!way_of_one_kind(known, old, 0, 5));
}

}  // namespace
}  // namespace lockstep::sim::known_states_test
