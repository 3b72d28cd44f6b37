#include "model/core/random.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace lockstep;

TEST_CASE("random bits are SplitMix64's sequence") {
  // Published reference output of splitmix64.c (Vigna) for the seed 1234567.
  const uint64_t expected[] = {6457827717110365317ULL, 3203168211198807973ULL,
                               9817491932198370423ULL, 4593380528125082431ULL,
                               16408922859458223821ULL};
  for (uint64_t turn = 0; turn < 5; ++turn) {
    CHECK(random_bits(1234567, turn) == expected[turn]);
  }
}

TEST_CASE("a draw depends on key and counter alone, whatever was drawn before") {
  const uint64_t late = random_bits(7, 1000);
  for (uint64_t turn = 0; turn < 1000; ++turn) {
    random_bits(7, turn);
  }
  CHECK(random_bits(7, 1000) == late);
}

TEST_CASE("bounded draws stay below their bound and reach all of it") {
  std::set<uint64_t> seen;
  for (uint64_t turn = 0; turn < 1000; ++turn) {
    const uint64_t drawn = random_below(3, turn, 6);
    REQUIRE(drawn < 6);
    seen.insert(drawn);
    const double unit = random_unit(3, turn);
    REQUIRE((unit >= 0 && unit < 1));
  }
  CHECK(seen.size() == 6);
}
