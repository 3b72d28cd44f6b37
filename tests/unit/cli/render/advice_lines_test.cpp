// Suggestions keep to their columns.
#include "cli/render/advice_lines.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

namespace lockstep::cli::advice_lines_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

Advice::Change change(const std::string& text) { return {text, 1_ms, 1000, Bytes(1024)}; }

TEST_CASE("a long suggestion goes on below its figures") {
  Advice advice;
  advice.steps = 3;
  advice.strategies = {
      change("deepspeed_stage_3"),
      change("deepspeed_stage_3_offload with optimizer: {DeepSpeedCPUAdam: {lr: 0.0001, "
             "weight_decay: 0.01}}"),
      change(
          "{FSDPStrategy: {auto_wrap_policy: blocks, cpu_offload: true, mixed_precision: null}}")};
  const std::vector<std::string> lines = lines_of(what_would_fit(advice, Bytes::max()));
  // An empty line and a heading, then one line for the first and two for each of the others.
  REQUIRE(lines.size() == 7);
  for (const size_t row : {2, 3, 5}) {
    CHECK(lines[row].size() == lines[1].size());
    CHECK(lines[row].ends_with("1.0 KiB"));
  }
  CHECK(lines[3].starts_with("  deepspeed_stage_3_offload   "));
  CHECK(lines[4] == "    with optimizer: {DeepSpeedCPUAdam: {lr: 0.0001, weight_decay: 0.01}}");
  CHECK(lines[5].starts_with("  {FSDPStrategy: {auto_wrap_policy: blocks,   "));
  CHECK(lines[6] == "    cpu_offload: true, mixed_precision: null}}");
}

TEST_CASE("why there are no suggestions is a sentence of several lines where it is long") {
  Advice advice;
  advice.why_no_base =
      "raises: parameters carry no values here: numerics are off; write verify: {numerics: true}, "
      "or train a smaller model";
  const std::vector<std::string> lines = lines_of(what_would_help(advice));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].starts_with("Suggestions: unknown, because a short run raises: "));
  CHECK(lines[1].size() <= 96);
  CHECK(lines[2].starts_with("  "));
}

}  // namespace
}  // namespace lockstep::cli::advice_lines_test
