#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("only a fit wraps the model, and every fit does") {
  const auto constructions = [](const std::string& main) {
    const Ran ran = run_text(R"yaml(version: 1
model: {preset: mlp}
trainer: {devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {samples: 16}}
program:
  main: )yaml" + main + "\n",
                             standard_strategies());
    CHECK_FALSE(ran.result.hung);
    CHECK(ran.result.ends[0].message == "");
    int64_t found = 0;
    ran.result.journal->lane(0, 0).for_each([&](const Row& row) {
      found += row.row == RowKind::op && row.site == site_id(ddp_sites::compare_shapes);
    });
    return found;
  };
  CHECK(constructions("[validate]") == 0);
  CHECK(constructions("[fit, validate]") == 1);
  CHECK(constructions("[validate, fit, validate, fit]") == 2);
}
