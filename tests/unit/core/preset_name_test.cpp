#include "model/core/preset_name.hpp"

#include <array>
#include <catch2/catch.hpp>

using namespace lockstep;

TEST_CASE("a point between digits tells names apart, other signs do not") {
  constexpr std::array<std::string_view, 2> names = {"gpt3-6.7b", "gpt3-13b"};
  const auto found = [&](std::string_view asked) {
    return find_preset_name(asked, names, {}, {}).name;
  };
  CHECK(found("GPT3 13B") == "gpt3-13b");
  CHECK(found("gpt3_6.7B") == "gpt3-6.7b");
  CHECK(found("gpt3-1.3b").empty());
  CHECK(found("gpt3-67b").empty());
}
