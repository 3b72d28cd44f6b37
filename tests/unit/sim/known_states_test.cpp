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
  return {std::move(kinds), to, 0, {}, 5_us, is_proven};
}

std::optional<KnownStates::Way> way_of_kinds(const KnownStates& known, size_t from,
                                             const std::vector<int64_t>& kinds, int64_t before,
                                             int64_t most) {
  return known.way(from, before, most, std::ssize(kinds), false,
                   [&kinds](int64_t at) { return kinds[static_cast<size_t>(at)]; });
}

std::optional<KnownStates::Way> way_of_one_kind(const KnownStates& known, size_t from,
                                                int64_t before, int64_t most) {
  return known.way(from, before, most, before + most + 1, true, [](int64_t) { return 7; });
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
  CHECK(way->cycle() == 2);
  CHECK(way->times == 2);  // the fifth does not lead back
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
  CHECK(way->before == 1);
  CHECK(way->cycle() == 1);
  CHECK(way->times == 9);
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
  CHECK(way->cycle() == 3);  // 1, 2, 1; the next leads to b, and what 3 does is not known
  CHECK(way->times == 1);
  CHECK(!way_of_kinds(known, a, {3, 1}, 0, 2));
}

TEST_CASE("what some rank had begun of the next period decides as well") {
  KnownStates known;
  const size_t a = known.number_of(words(1));
  known.note(a, transition({1, 1}, a));
  CHECK(way_of_kinds(known, a, {1, 1, 1, 2}, 0, 3)->cycle() == 2);
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

TEST_CASE("old states are forgotten where there are many") {
  KnownStates known;
  for (int64_t number = 0; number < 1000; ++number) {
    known.number_of(words(number));
  }
  CHECK(known.forgotten() > 0);
}

}  // namespace
}  // namespace lockstep::sim::known_states_test
