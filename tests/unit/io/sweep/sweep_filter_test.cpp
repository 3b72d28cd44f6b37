#include <catch2/catch.hpp>

#include "io/sweep/sweep_filter.hpp"

using namespace lockstep;

namespace sweep_filter_test {

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

const Keys& keys() {
  static const Keys some = {
      {"trainer.devices", "2"}, {"cluster.gpu.memory", "40 GB"}, {"trainer.strategy", "ddp"}};
  return some;
}

SweepRow row_with(int64_t devices, std::vector<std::pair<std::string, Value>> figures) {
  SweepRow row;
  row.number = 3;
  row.verdict = figures.empty() ? "hangs" : "ok";
  row.values = {{"trainer.devices", std::to_string(devices)},
                {"cluster.gpu.memory", "80 GB"},
                {"trainer.strategy", "fsdp"}};
  row.figures = std::move(figures);
  return row;
}

bool keeps(const std::string& condition, const SweepRow& row) {
  const auto parsed = SweepFilter::parse(condition, keys());
  INFO(condition);
  REQUIRE(std::holds_alternative<SweepFilter>(parsed));
  return std::get<SweepFilter>(parsed).keeps(row);
}

SweepFilterError error_of(const std::string& condition) {
  const auto parsed = SweepFilter::parse(condition, keys());
  INFO(condition);
  REQUIRE(std::holds_alternative<SweepFilterError>(parsed));
  return std::get<SweepFilterError>(parsed);
}

}  // namespace

TEST_CASE("a condition compares results and keys with their units") {
  const SweepRow row =
      row_with(8, {{"step_time", Value(Time(40'000'000'000))},
                   {"memory.peak", Value(Bytes(int64_t{79} << 30))},
                   {"breakdown.exposed_communication", Value(Time(1'000'000'000))}});
  CHECK(keeps("step_time < 41 ms", row));
  CHECK_FALSE(keeps("step_time < 40 ms", row));
  CHECK(keeps("memory.peak < 80 GiB and memory.peak > 80 GB", row));
  CHECK(keeps("breakdown.exposed_communication / step_time < 0.03", row));
  CHECK(keeps("trainer.devices >= 8", row));
  CHECK(keeps("cluster.gpu.memory == 80 GB", row));
  CHECK(keeps("trainer.strategy == 'fsdp' and verdict == 'ok' and case == 3", row));
}

TEST_CASE("a row without a value that decides is not kept") {
  const SweepRow row = row_with(8, {});
  CHECK_FALSE(keeps("step_time < 41 ms", row));
  CHECK_FALSE(keeps("not step_time < 41 ms", row));
  CHECK(keeps("trainer.devices == 8 or step_time < 41 ms", row));
  CHECK(keeps("verdict == 'hangs'", row));
}

TEST_CASE("a condition that can mean nothing is refused with what to write") {
  CHECK(error_of("step_tme < 1 s").message == "there is no result or varied key `step_tme`");
  CHECK(error_of("step_tme < 1 s").remedy.find("step_time") != std::string::npos);
  CHECK(error_of("step_time < 3").message.find("time") != std::string::npos);
  CHECK(error_of("step_time <").message.size() > 5);
  CHECK(error_of("trainer.nodes == 2").message.find("trainer.nodes") != std::string::npos);
  CHECK(error_of("step_time").message.size() > 5);
  CHECK_FALSE(error_of("verdict == 'ok' or step_time < 3 GB").message.empty());
}

TEST_CASE("a text is read as the value that it means") {
  CHECK(value_of_text("8") == Value(8));
  CHECK(value_of_text("3e-4") == Value(3e-4));
  CHECK(value_of_text("true") == Value(true));
  CHECK(value_of_text("400 ms") == Value(Time(400'000'000'000)));
  CHECK(value_of_text("40GB") == Value(Bytes(40'000'000'000)));
  CHECK(value_of_text("bf16-mixed") == Value("bf16-mixed"));
  CHECK(value_of_text("[1, 2]") == Value("[1, 2]"));
  CHECK(value_of_text("") == Value(""));
  CHECK(value_of_text("inf") == Value("inf"));
}

}  // namespace sweep_filter_test
