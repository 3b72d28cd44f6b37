// The `model` section as a network.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("the shortcut of a residual is built") {
  const Preparation preparation = prepare(
      scenario_of(
          "version: 1\nmodel: {layers: [{Residual: {layers: [{Linear: [4, 2]}], shortcut: "
          "[{Linear: {in_features: 4, out_features: 2, name: project}}]}}], loss: MSELoss}\n"
          "trainer: {devices: 1, max_epochs: 1}\n"),
      standard_strategies());
  REQUIRE(preparation.network);
  CHECK(preparation.network->parameter_elements() == 2 * (4 * 2 + 2));
}
