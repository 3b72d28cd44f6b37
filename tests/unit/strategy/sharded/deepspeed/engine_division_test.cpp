// In which parts DeepSpeed divides gradients by the number of ranks.
#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/engine_division.hpp"

using namespace lockstep;

TEST_CASE("both divisions of a gradient make a mean") {
  for (const int32_t ranks : {1, 2, 3, 8, 12}) {
    for (const bool comes_before : {false, true}) {
      for (const double predivided : {1.0, 2.0, 3.0, 8.0, 0.5}) {
        const EngineDivision division{comes_before, predivided};
        CHECK(division.before_sum(ranks) * division.behind_sum(ranks) * ranks == Approx(1));
      }
    }
  }
}

TEST_CASE("a gradient is divided behind the sum, unless the configuration says otherwise") {
  CHECK(EngineDivision{}.before_sum(8) == 1);
  CHECK(EngineDivision{}.behind_sum(8) == 1.0 / 8);
  CHECK(EngineDivision{.predivided = 4}.before_sum(8) == 1.0 / 4);
  CHECK(EngineDivision{.predivided = 4}.behind_sum(8) == 1.0 / 2);
  CHECK(EngineDivision{.predivided = 8}.behind_sum(8) == 1);  // no second division
  // `prescale_gradients` leaves nothing to the factor.
  CHECK(EngineDivision{true, 4}.before_sum(8) == 1.0 / 8);
  CHECK(EngineDivision{true, 4}.behind_sum(8) == 1);
}
