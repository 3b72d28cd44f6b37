// Learning rates and momenta of a training against those of torch 2.11's schedulers
// (docs/oracle.md).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace scheduler_oracle_test {
using nlohmann::json;

namespace {

constexpr size_t recorded_steps = 40;

std::vector<json> recorded_settings() {
  std::vector<json> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/schedulers")) {
    std::ifstream file(entry.path());
    json recording = json::parse(file);
    for (json& setting : recording["settings"]) {
      all.push_back(std::move(setting));
    }
  }
  std::ranges::sort(all, {}, [](const json& each) { return each.dump(); });
  return all;
}

/// An epoch of one batch for each step of the scheduler.
std::string scenario_with(const json& setting) {
  return fmt::format(
      "version: 1\n"
      "trainer: {{accelerator: cpu, devices: 1, max_epochs: {}, num_sanity_val_steps: 0,\n"
      "  callbacks: [{{LearningRateMonitor: {{logging_interval: epoch, log_momentum: true}}}}]}}\n"
      "data: {{train: {{samples: 1, batch_size: 1}}}}\n"
      "optimizer: {}\n"
      "lr_scheduler: {}\n",
      recorded_steps, setting["optimizer"].dump(), setting["lr_scheduler"].dump());
}

std::vector<double> momenta_of(const RankLog& log, const std::string& optimizer) {
  std::vector<double> momenta;
  for (const LoggerRow& row : log.logger.rows) {
    const auto found = row.values.find("lr-" + optimizer + "-momentum");
    if (found != row.values.end()) {
      momenta.push_back(found->second);
    }
  }
  return momenta;
}

// Rates are products of up to 40 factors, in the order of torch, and the functions of libm may
// differ by a unit in the last place from one machine to another. A cosine near its zero keeps an
// absolute error of its amplitude, so the bound is that of the greatest rate.
void check_close(const std::vector<double>& ours, const json& theirs, size_t count) {
  double greatest = 0;
  for (const json& each : theirs) {
    greatest = std::max(greatest, std::abs(each.get<double>()));
  }
  REQUIRE(ours.size() >= count);
  for (size_t i = 0; i < count; ++i) {
    INFO(fmt::format("after {} steps", i));
    CHECK(std::abs(ours[i] - theirs[i].get<double>()) <= 64 * 0x1p-52 * greatest);
  }
}

}  // namespace

TEST_CASE("schedulers have the rates and momenta of torch") {
  const std::vector<json> settings = recorded_settings();
  CHECK(settings.size() >= 70);
  for (const json& setting : settings) {
    if (setting.contains("fails") && setting["rates"].empty()) {
      continue;
    }
    const std::string text = scenario_with(setting);
    INFO(text);
    const Ran ran = run_text(text, standard_strategies());
    const RankLog& log = ran.log(0);
    const size_t count = setting["rates"].size();
    const std::string optimizer = setting["optimizer"].begin().key();
    const bool fails = setting.contains("fails");
    CHECK(count == (fails ? log.learning_rates.at(0).size() : recorded_steps + 1));
    check_close(log.learning_rates.at(0), setting["rates"], count);
    check_close(momenta_of(log, optimizer), setting["momenta"], fails ? count : recorded_steps);
    CHECK((ran.result.ends[0].kind == RankEnd::Kind::finished) == !fails);
  }
}

TEST_CASE("schedulers raise what torch raises") {
  size_t failures = 0;
  for (const json& setting : recorded_settings()) {
    if (!setting.contains("fails")) {
      continue;
    }
    ++failures;
    const std::string text = scenario_with(setting);
    INFO(text);
    const Ran ran = run_text(text, standard_strategies());
    const std::string expected = setting["fails"].get<std::string>();
    CHECK(ran.result.ends[0].message.find(expected) != std::string::npos);
  }
  CHECK(failures == 7);
}

}  // namespace scheduler_oracle_test
