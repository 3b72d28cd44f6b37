#include "model/trainer/loop/decided_windows.hpp"

#include <catch2/catch.hpp>

#include "model/trainer/loop/training_program.hpp"

using namespace lockstep;

namespace decided_windows_test {

TEST_CASE("windows of one kind are stretches, whatever comes between them") {
  const DecidedWindows decided({0, 1, 1, 0, 0, 0}, true);
  CHECK_FALSE(decided.are_alike());
  CHECK(decided.kind_of(2) == 1);
  CHECK(decided.kind_of(0) == decided.kind_of(5));
  CHECK(decided.alike_from(0) == 1);
  CHECK(decided.alike_from(1) == 2);
  CHECK(decided.alike_from(4) == 2);  // to the end of the pass
  CHECK(decided.next_break(0) == TrainerSettings::no_limit);
}

TEST_CASE("nothing is known of a window of its own, nor behind it") {
  const DecidedWindows decided({0, 0, -1, 0}, true);
  CHECK_FALSE(decided.is_break(1));
  CHECK(decided.is_break(2));
  CHECK(decided.is_break(3));
  CHECK(decided.next_break(0) == 2);
  CHECK(decided.next_break(2) == 3);
}

// Rank 0's kinds say nothing of a rank that is in another window: only changes count.
TEST_CASE("where ranks are not in step each change is a break") {
  const DecidedWindows decided({0, 1, 1, 0}, false);
  CHECK(decided.are_alike());
  CHECK(decided.kind_of(1) == decided.kind_of(0));
  CHECK(decided.is_break(1));
  CHECK_FALSE(decided.is_break(2));
  CHECK(decided.next_break(1) == 3);
}

TEST_CASE("where nothing is decided no window differs") {
  const DecidedWindows decided({}, true);
  CHECK(decided.are_alike());
  CHECK(decided.kind_of(7) == 0);
  CHECK(decided.alike_from(7) == TrainerSettings::no_limit);
  CHECK_FALSE(decided.is_break(7));
}

}  // namespace decided_windows_test
