// What a comparison with one device says where a narrow type hides differences.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::narrow_types_on_one_device_test {
namespace {

// DeepSpeed divides by the window, and Lightning does so before it: gradients are half.
Rehearsal halved(const std::string& precision, int epochs) {
  auto jobs = test::rehearsed(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [12], layers: [{Linear: [12, 30]}, ReLU, {Linear: [30, 4]}], loss: "
      "CrossEntropyLoss}\noptimizer: {SGD: {lr: 0.5}}\n"
      "data: {train: {samples: 96, batch_size: 4}}\n"
      "trainer: {accelerator: gpu, devices: 3, max_epochs: " +
      std::to_string(epochs) +
      ", num_sanity_val_steps: 0, limit_val_batches: 0, strategy: deepspeed_stage_2, "
      "accumulate_grad_batches: 2, precision: " +
      precision + "}\n");
  return std::move(jobs.front().result);
}

bool is_said(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(
      lines, [&text](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

// 4 and 20 steps of 8 significant bits.
TEST_CASE("a comparison says how near a narrow type lets it look") {
  const Rehearsal wide = halved("32-true", 5);
  CHECK(std::ranges::any_of(wide.findings,
                            [](const Finding& finding) { return finding.code == "LS306"; }));
  const Rehearsal few = halved("bf16-mixed", 1);
  CHECK(is_said(few.coverage.looked_at, "% of the largest, as 4 steps round to bf16)"));
  const Rehearsal many = halved("bf16-mixed", 5);
  CHECK_FALSE(is_said(many.coverage.looked_at, "one device"));
  CHECK(
      is_said(many.coverage.not_looked_at, "rounding to bf16 in 20 steps explains any difference"));
}

}  // namespace lockstep::cli::narrow_types_on_one_device_test
