#include "model/core/spelling.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

TEST_CASE("the distance of two words counts letters that change, come, go or swap") {
  CHECK(edit_distance("stage", "stage") == 0);
  CHECK(edit_distance("Stage", "sTAGE") == 0);  // case is folded
  CHECK(edit_distance("stgae", "stage") == 1);  // two letters change places
  CHECK(edit_distance("stag", "stage") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("optimisation", "optimization") == 1);
}

TEST_CASE("a word is meant where at most a third of its letters differ") {
  CHECK(did_you_mean("Linaer", {"ReLU", "Linear"}) == "did you mean `Linear`?");
  CHECK(did_you_mean("Conv2d", {"ReLU", "Linear"}).empty());
  CHECK(did_you_mean("anything", {}).empty());
  CHECK(nearest_spelling("ab", {"ac", "bb"}) == "ac");  // the first of equally near ones
}
