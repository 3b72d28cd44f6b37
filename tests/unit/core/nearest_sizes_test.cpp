#include "model/core/nearest_sizes.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

TEST_CASE("an error offers the multiples on both sides, of which none is 0") {
  CHECK(nearest_multiples(10, 4) == "8 or 12");
  CHECK(nearest_multiples(3, 4) == "4");
  CHECK(nearest_multiples(12, 4) == "12");
  CHECK(nearest_multiples(0, 4) == "4");
}

TEST_CASE("an error offers divisors: all of a small number, else those on both sides") {
  CHECK(divisors_of(4, 8) == "1, 2 or 4");
  CHECK(divisors_of(7, 2) == "1 or 7");
  CHECK(divisors_of(96, 5) == "4 or 6");
  CHECK(divisors_of(96, 100) == "96");
  CHECK(divisors_of(4, 3, 2) == "2 or 4");
  CHECK(one_of_numbers({}).empty());
}
