// The release of torch that is assumed under a Lightning.
#include "model/trainer/framework/torch_release.hpp"

#include <catch2/catch.hpp>

#include "model/trainer/prepare/prepare_parts.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace torch_release_test {

// The compatibility matrix of Lightning's documentation (versioning.rst).
TEST_CASE("the release of torch follows that of Lightning") {
  CHECK(torch_release_of({1, 4, 9}) == Version{1, 9, 0});
  CHECK(torch_release_of({1, 5, 0}) == Version{1, 10, 0});
  CHECK(torch_release_of({1, 6, 5}) == Version{1, 11, 0});
  CHECK(torch_release_of({1, 7, 7}) == Version{1, 12, 0});
  CHECK(torch_release_of({1, 8, 0}) == Version{1, 13, 0});
  CHECK(torch_release_of({1, 9, 5}) == Version{1, 13, 0});
  CHECK(torch_release_of({2, 0, 9}) == Version{2, 0, 0});
  CHECK(torch_release_of({2, 1, 0}) == Version{2, 1, 0});
  CHECK(torch_release_of({2, 2, 0}) == Version{2, 2, 0});
  CHECK(torch_release_of({2, 3, 0}) == Version{2, 3, 0});
  CHECK(torch_release_of({2, 4, 0}) == Version{2, 4, 0});
  CHECK(torch_release_of({2, 5, 3}) == Version{2, 7, 0});
  CHECK(torch_release_of({2, 6, 0}) == Version{2, 11, 0});
}

// From torch 2.0 on zero_grad sets gradients to None.
TEST_CASE("a training of an older Lightning runs on a torch of its time unless it names one") {
  const auto sets_to_none = [](const std::string& versions) {
    const Preparation preparation =
        prepare(scenario_of("version: 1\nversions: {" + versions +
                            "}\ncluster: {preset: dgx-a100, nodes: 1}\n"
                            "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
                            "data: {train: {samples: 16, batch_size: 2}}\n"
                            "trainer: {accelerator: gpu, devices: 2, strategy: ddp, "
                            "max_steps: 2}\n"),
                standard_strategies());
    return preparation.plan.optimizers.front().set_to_none;
  };
  CHECK(!sets_to_none("lightning: \"1.6.5\""));
  CHECK(!sets_to_none("lightning: \"1.9\""));
  CHECK(sets_to_none("lightning: \"1.9\", torch: \"2.0\""));
  CHECK(sets_to_none("lightning: \"2.0\""));
  CHECK(!sets_to_none("lightning: \"2.0\", torch: \"1.13\""));
  CHECK(sets_to_none(""));
}

}  // namespace torch_release_test
