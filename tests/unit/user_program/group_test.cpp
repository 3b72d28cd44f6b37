#include "model/user_program/group.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace group_test {

TEST_CASE("a group without a list of members is the world") {
  const Group world;
  CHECK(world.has(3));
  CHECK(world.size(4) == 4);
  CHECK(world.index_of(3) == 3);
}

TEST_CASE("members of a group are counted in its order, not by their ranks") {
  const Group group{GroupId{1}, {5, 2, 7}};
  CHECK(group.has(2));
  CHECK_FALSE(group.has(0));
  CHECK(group.size(8) == 3);
  CHECK(group.index_of(5) == 0);
  CHECK(group.index_of(7) == 2);
  CHECK(group.index_of(0) == 3);
}

}  // namespace group_test
