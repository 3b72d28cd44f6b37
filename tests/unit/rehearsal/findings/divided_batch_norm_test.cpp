// What is advised where batch norm has statistics of a part of the batch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::divided_batch_norm_test {
namespace {

/// The fix of LS306; empty: there is no difference.
std::string fix_of(const std::string& norm, const std::string& strategy) {
  const auto jobs = test::rehearsed(fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{input: [8], loss: MSELoss, layers: [{{Linear: [8, 8]}}, {}, {{Linear: [8, 4]}}]}}\n"
      "optimizer: {{SGD: {{lr: 0.1}}}}\ndata: {{train: {{samples: 32, batch_size: 8}}}}\n"
      "trainer: {{accelerator: gpu, devices: 2, max_epochs: 1, num_sanity_val_steps: 0, "
      "strategy: {}}}\n",
      norm, strategy));
  const std::vector<Finding>& findings = jobs.front().result.findings;
  const auto found = std::ranges::find(findings, "LS306", &Finding::code);
  return found == findings.end() ? "" : fmt::format("{}", fmt::join(found->fix, " "));
}

}  // namespace

TEST_CASE("micro-batches of a pipeline are not joined by sync_batchnorm, and the advice says so") {
  const std::string pipeline = "{PipelineStrategy: {schedule: GPipe, n_microbatches: 4}}";
  const std::string fix = fix_of("{BatchNorm1d: 8}", pipeline);
  CHECK(fix.find("sync_batchnorm would not help") != std::string::npos);
  CHECK(fix.find("larger micro-batches") != std::string::npos);
  CHECK(fix_of("{BatchNorm1d: 8}", "ddp").find("else use sync_batchnorm") != std::string::npos);
  CHECK(fix_of("{LayerNorm: 8}", pipeline).empty());
}

}  // namespace lockstep::cli::divided_batch_norm_test
