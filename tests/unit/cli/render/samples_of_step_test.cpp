// The number of samples per step, where some ranks are servers and updates do not wait for all.
#include <catch2/catch.hpp>

#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "rehearsal/run/samples_per_step.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace samples_of_step_test {

namespace {

// Three workers and a server; each worker takes 4 samples per step.
std::vector<Job> served(const std::string& mode) {
  return rehearsed(
      "version: 1\nversions: {lightning: \"2.4\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}\n"
      "data: {train: {samples: 96, batch_size: 4}}\nverify: {numerics: false}\n"
      "trainer: {accelerator: gpu, devices: 4, max_epochs: 1, num_sanity_val_steps: 0, "
      "limit_val_batches: 0, enable_checkpointing: false, strategy: {ParameterServerStrategy: {" +
      mode + "}}}\n");
}

std::string line_of(const std::string& mode) {
  const std::vector<Job> jobs = served(mode);
  const std::string text = render_run(jobs.front().result, {}, false);
  const size_t end = text.find(" per update\n") == std::string::npos
                         ? text.find(")\n", text.find(" per step"))
                         : text.find(" per update\n") + 10;
  const size_t begin = text.rfind('\n', text.find(" per step")) + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

TEST_CASE("servers are not counted as devices that take samples") {
  CHECK(line_of("mode: sync") == "12 samples per step (4 per device x 3 workers)");
}

TEST_CASE("samples of a step are those of all workers, beside those of an update") {
  CHECK(line_of("mode: async") ==
        "12 samples per step of all workers (4 per device x 3 workers), 4 per update");
  CHECK(line_of("mode: ssp, max_staleness: 1") ==
        "12 samples per step of all workers (4 per device x 3 workers), 4 per update");
  CHECK(line_of("mode: batched, batch: 2") ==
        "12 samples per step of all workers (4 per device x 3 workers), 8 per update");
}

TEST_CASE("samples of a step over its time are the throughput") {
  for (const char* mode : {"mode: sync", "mode: async", "mode: ssp, max_staleness: 1"}) {
    INFO(mode);
    const std::vector<Job> jobs = served(mode);
    const Results& results = jobs.front().result.results;
    CHECK(samples_per_step(jobs.front().result.run, results) == 12);
    REQUIRE(results.prediction.step_time);
    REQUIRE(results.prediction.samples_per_s);
    const double step_s = static_cast<double>(results.prediction.step_time->count()) * 1e-12;
    CHECK(*results.prediction.samples_per_s == Approx(12 / step_s).epsilon(0.01));
  }
}

TEST_CASE("JSON has the samples of a step and of an update") {
  Request request;
  request.command = "run";
  const std::vector<Job> jobs = served("mode: async");
  const Json report = Json::parse(cli::text_of(json_of({&jobs.front().result}, request)));
  CHECK(report.at("cases").at(0).at("samples_per_step") == 12);
  CHECK(report.at("cases").at(0).at("samples_per_update") == 4);
}

}  // namespace samples_of_step_test
