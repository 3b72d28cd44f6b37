#include "rehearsal/measure/compare.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "rehearsal/findings/invariants.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace compare_test {
using test::source_of_text;

namespace {

constexpr const char* by_adam = R"yaml(version: 1
cluster: {preset: cpu}
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 3, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 24, batch_size: 4}}
optimizer: {AdamW: {lr: 0.001}}
model: {input: [64], layers: [{Linear: [64, 64]}]}
)yaml";

const Point& values_of(const Comparison& comparison) {
  const auto found = std::ranges::find(comparison.points, "values", &Point::name);
  REQUIRE(found != comparison.points.end());
  return *found;
}

/// A run in the place of a real one: `change` is added to one element of the first parameter.
Comparison with_changed(size_t element, double change) {
  const Scenario scenario = source_of_text(by_adam).load().scenarios.front();
  const RunRequest request{World::simulated, false, {}, nullptr};
  const OneRun run = run_once(scenario, request);
  Values& parameter = run.preparation.log->ranks[0].final_parameters[0];
  const auto index = static_cast<int64_t>(element);
  parameter.set(index, parameter.number(index) + change);
  return compare(scenario, run, {}, false, nullptr);
}

// Two threads of a rank: the one that averages weights, and training.
constexpr const char* by_threads = R"yaml(version: 1
versions: {lightning: "1.6"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, max_steps: 2, num_sanity_val_steps: 0,
          limit_val_batches: 0, strategy: {BaguaStrategy: {algorithm: async}}}
data: {train: {samples: 16, batch_size: 4}}
model: {input: [4], layers: [{Linear: [4, 4]}]}
)yaml";

/// Whether a run in the place of a real one that has this finding, too, ends as the simulation.
bool ends_alike(const char* text, const Finding& found) {
  const Scenario scenario = source_of_text(text).load().scenarios.front();
  const OneRun run = run_once(scenario, {World::simulated, false, {}, nullptr});
  std::vector<Finding> findings = findings_of(run, World::simulated);
  findings.push_back(found);
  const Comparison comparison = compare(scenario, run, findings, false, nullptr);
  const auto outcome = std::ranges::find(comparison.points, "outcome", &Point::name);
  REQUIRE(outcome != comparison.points.end());
  return outcome->equal;
}

Finding about_rank_0(const std::string& code, Level level) {
  Finding finding = finding_of(code, level, "an order that only this run had");
  finding.ranks.add(0);
  return finding;
}

}  // namespace

TEST_CASE("in which order threads of a rank launched kernels is chance, and not compared") {
  CHECK(ends_alike(by_threads, about_rank_0("LS106", Level::warning)));
  // A hang is no chance, neither are other findings, and a rank of one thread has one order.
  CHECK_FALSE(ends_alike(by_threads, about_rank_0("LS106", Level::error)));
  CHECK_FALSE(ends_alike(by_threads, about_rank_0("LS203", Level::warning)));
  CHECK_FALSE(ends_alike(by_adam, about_rank_0("LS106", Level::warning)));
}

TEST_CASE("only an element whose gradient is rounding may be a step of Adam away") {
  const Scenario scenario = source_of_text(by_adam).load().scenarios.front();
  const OneRun run = run_once(scenario, {World::simulated, false, {}, nullptr});
  const Slice place = run.preparation.log->ranks[0].final_parameter_places[0];
  const UpdateSensitivity& sensitivity =
      run.result.sensitivities[0].at({place.buffer.value, place.begin});
  const std::vector<float>& by_error = sensitivity.by_error;
  REQUIRE(by_error.size() == 64 * 64);
  const auto most = static_cast<size_t>(std::ranges::max_element(by_error) - by_error.begin());
  const auto least = static_cast<size_t>(std::ranges::min_element(by_error) - by_error.begin());

  CHECK(values_of(with_changed(most, 0)).extent == "bit for bit");
  const Comparison far = with_changed(most, 5e-4);  // half a step
  INFO(values_of(far).extent);
  CHECK(values_of(far).equal);
  CHECK(values_of(far).extent.find("1 element whose gradient is rounding alone") !=
        std::string::npos);
  CHECK_FALSE(values_of(with_changed(least, 5e-4)).equal);
  CHECK_FALSE(values_of(with_changed(most, 0.1)).equal);
}

}  // namespace compare_test
