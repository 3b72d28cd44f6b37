// What is advised where some ranks leave a hook that others go through.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "properties/diagnosis/remedy.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::return_remedy_test {
namespace {

std::string lines_of(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

struct Advised {
  int line = 0;
  std::string fix;
};

Advised advised(const std::string& program, const std::string& lightning = "2.2") {
  const auto jobs = test::rehearsed(fmt::format(
      "version: 1\nversions: {{lightning: \"{}\"}}\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{input: [8], layers: [{{Linear: [8, 4]}}], loss: MSELoss}}\n"
      "data: {{train: {{samples: 32, batch_size: 4}}}}\n"
      "trainer: {{accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}}\nprogram:\n{}",
      lightning, program));
  const Rehearsal& ran = jobs.front().result;
  REQUIRE_FALSE(ran.findings.empty());
  const Site* const site = ran.sites.find(ran.findings.front().place);
  return {site == nullptr ? 0 : site->line, lines_of(ran.findings.front().fix)};
}

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_CASE("a condition under which ranks leave is asked for any rank") {
  const Advised advice =
      advised("  training_step: [{if: rank == 1 and batch_idx == 1, then: [return]}, forward]\n");
  CHECK(holds(advice.fix,
              "{reduce_boolean_decision: {value: rank == 1 and batch_idx == 1, all: false, "
              "as: skips}}"));
  CHECK(holds(advice.fix, "{if: skips, then: [return]}"));
}

TEST_CASE("a condition under which ranks go on is asked for all ranks") {
  const Advised advice = advised(
      "  training_step: [{if: rank == 0 or batch_idx != 1, then: [forward], else: [return]}]\n");
  CHECK(holds(advice.fix,
              "{reduce_boolean_decision: {value: rank == 0 or batch_idx != 1, all: true, "
              "as: goes_on}}"));
  CHECK(holds(advice.fix, "else: [return]"));
}

TEST_CASE("the branch that parts the ranks is named with those between it and the return") {
  const Advised advice = advised(
      "  training_step: [{if: rank == 1, then: [{if: batch_idx == 2, then: [return]}]}, "
      "forward]\n");
  CHECK(holds(advice.fix, "value: (rank == 1) and (batch_idx == 2), all: false"));
  const Advised otherwise = advised(
      "  training_step: [{if: rank == 0, then: [{host: 1 us}], else: [{if: batch_idx == 2, "
      "then: [return]}]}, forward]\n");
  CHECK(holds(otherwise.fix, "value: not (rank == 0) and (batch_idx == 2), all: false"));
}

TEST_CASE("a return behind which its hook does nothing is not blamed") {
  // Line 8 is harmless, and parts the ranks before line 9 does.
  const Advised advice = advised(
      "  on_train_batch_start: [{if: rank == 1, then: [return]}]\n"
      "  training_step: [{if: rank == 1 and batch_idx == 1, then: [return]}, forward]\n");
  CHECK(advice.line == 9);
  CHECK(holds(advice.fix, "value: rank == 1 and batch_idx == 1"));
}

TEST_CASE("where the trainer refuses a skipped step, leaving together is not advised") {
  GuardedReturn leaves{"rank == 1", true, true};
  CHECK(holds(lines_of(remedy_for_return(leaves)), "Lightning from 2.3 on raises"));
  CHECK_FALSE(holds(lines_of(remedy_for_return(leaves)), "reduce_boolean_decision"));
  leaves.is_refused = false;
  leaves.condition = "max(a, b) > 1";  // a comma ends a value inside of braces
  CHECK(holds(lines_of(remedy_for_return(leaves)), "value: \"max(a, b) > 1\", all: false"));
}

}  // namespace
}  // namespace lockstep::cli::return_remedy_test
