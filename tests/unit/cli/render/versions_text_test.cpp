// The releases that the head of an answer names.
#include <catch2/catch.hpp>

#include "cli/render/answer_lines.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace versions_text_test {

TEST_CASE("the release of torch is printed where it is assumed for an older Lightning") {
  const auto text = [](const std::string& versions) {
    const std::vector<Job> jobs =
        rehearsed("version: 1\n" + versions +
                      "cluster: {preset: dgx-a100, nodes: 1}\n"
                      "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
                      "data: {train: {samples: 16, batch_size: 2}}\n"
                      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 2}\n",
                  Judges::quantities);
    return versions_text(jobs.front().result);
  };
  CHECK(text("versions: {lightning: \"1.6.5\"}\n") == "lightning 1.6 · torch 1.11 (assumed)");
  CHECK(text("versions: {lightning: \"1.6.5\", torch: \"1.13\"}\n") == "lightning 1.6");
  CHECK(text("") == "lightning 2.6");
}

}  // namespace versions_text_test
