// The files of `run --logs`.
#include "cli/render/logs/write_logs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rehearsal/sweep/csv_cells.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"
#include "tests/unit/temporary_place.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace write_logs_test {

namespace {

// 8 steps per epoch, 2 ranks, a row at every fourth step, a validation at the end of each epoch.
const std::string small = R"(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}
optimizer: {SGD: {lr: 0.25}}
data: {train: {samples: 64, batch_size: 4}, val: {samples: 16, batch_size: 4}}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2, log_every_n_steps: 4}
program:
  training_step:
    - log: {name: train_loss, value: loss}
  validation_step:
    - log: {name: val_loss, value: loss, sync_dist: true}
)";

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// A file of rows as lines of cells; the first has the titles.
std::vector<std::vector<std::string>> table_of(const std::string& path) {
  std::string fault;
  std::vector<std::vector<std::string>> lines;
  for (CsvLine& line : csv_cells(text_of_file(path), fault)) {
    lines.push_back(std::move(line.cells));
  }
  REQUIRE(fault.empty());
  return lines;
}

std::string cell(const std::vector<std::vector<std::string>>& table, size_t row,
                 const std::string& title) {
  const auto found = std::ranges::find(table.front(), title);
  REQUIRE(found != table.front().end());
  return table.at(row).at(static_cast<size_t>(found - table.front().begin()));
}

struct Written {
  TemporaryPlace place;
  Rehearsal ran;
  std::string told;

  explicit Written(const std::string& scenario) : ran(advised(scenario)) {
    told = write_logs(ran, place.path(), nullptr);
  }
  std::string path(const std::string& name) const { return place.path() + "/" + name; }
};

}  // namespace

TEST_CASE("a row is written for each logged step and each validation, with what was computed") {
  const Written written(small);
  const auto table = table_of(written.path("metrics.csv"));
  const std::vector<std::string> titles = {"epoch",         "step",       "time_s",  "lr-SGD",
                                           "samples_per_s", "train_loss", "val_loss"};
  CHECK(table.front() == titles);
  REQUIRE(table.size() == 1 + 4 + 2);  // steps 3, 7, 11, 15, and two validations
  std::vector<std::string> steps;
  double before = 0;
  for (size_t row = 1; row < table.size(); ++row) {
    steps.push_back(cell(table, row, "step"));
    const bool is_validation = !cell(table, row, "val_loss").empty();
    CHECK(cell(table, row, "train_loss").empty() == is_validation);
    CHECK(cell(table, row, "lr-SGD") == (is_validation ? "" : "0.25"));
    const double time = std::stod(cell(table, row, "time_s"));
    CHECK(time >= before);
    before = time;
  }
  CHECK(before <= seconds(written.ran.run.result.total_time));
  CHECK(steps == std::vector<std::string>{"3", "7", "7", "11", "15", "15"});
  CHECK(cell(table, 1, "epoch") == "0");
  CHECK(cell(table, 4, "epoch") == "1");
  // 4 steps of 8 samples between two rows.
  const double span = std::stod(cell(table, 2, "time_s")) - std::stod(cell(table, 1, "time_s"));
  CHECK(std::stod(cell(table, 2, "samples_per_s")) == Approx(32 / span).epsilon(1e-6));
}

TEST_CASE("the values are those that rank 0's loggers got") {
  const Written written(small);
  RunRequest how;
  how.arithmetic = Arithmetic::always;
  const OneRun valued = run_once(*written.ran.scenario, how);
  REQUIRE(valued.preparation.options.numerics);
  const auto table = table_of(written.path("metrics.csv"));
  int compared = 0;
  for (const LoggerRow& row : valued.preparation.log->ranks.front().logger.rows) {
    if (const auto loss = row.values.find("train_loss"); loss != row.values.end()) {
      for (size_t line = 1; line < table.size(); ++line) {
        if (cell(table, line, "step") == std::to_string(row.step) &&
            !cell(table, line, "train_loss").empty()) {
          CHECK(std::stod(cell(table, line, "train_loss")) == loss->second);
          ++compared;
        }
      }
    }
  }
  CHECK(compared == 4);
}

// StepLR: half the rate after each 30 steps.
TEST_CASE("each row has the learning rate of its step, also of steps that repeat others") {
  const Written written(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: gpt2}\n"
      "data: {train: {samples: 404, batch_size: 2}}\noptimizer: {SGD: {lr: 0.25}}\n"
      "lr_scheduler: {StepLR: {step_size: 30, gamma: 0.5, interval: step}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 4, "
      "log_every_n_steps: 8, callbacks: [LearningRateMonitor]}\n");
  CHECK(written.told.find("left empty") == std::string::npos);
  CHECK_FALSE(written.ran.run.result.journal->repeated.empty());
  const auto table = table_of(written.path("metrics.csv"));
  REQUIRE(table.size() == 1 + 404 / 8);
  for (size_t row = 1; row < table.size(); ++row) {
    const int step = std::stoi(cell(table, row, "step"));
    CHECK(std::stod(cell(table, row, "lr-SGD")) == Approx(0.25 * std::pow(0.5, step / 30)));
  }
}

TEST_CASE("what is not computed stays empty") {
  const Written written(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: gpt2}\n"
      "data: {train: {samples: 160, batch_size: 1}}\n"
      "trainer: {accelerator: gpu, devices: 8, strategy: ddp, max_epochs: 1, "
      "log_every_n_steps: 5}\n"
      "program: {training_step: [{log: {name: train_loss, value: loss}}]}\n");
  CHECK(written.told.find("left empty: train_loss") != std::string::npos);
  const auto table = table_of(written.path("metrics.csv"));
  REQUIRE(table.size() == 1 + 4);
  for (size_t row = 1; row < table.size(); ++row) {
    CHECK(cell(table, row, "train_loss").empty());
    CHECK(std::stod(cell(table, row, "samples_per_s")) > 0);
  }
}

TEST_CASE("the monitor has a row for each period and rank") {
  const Written written(small);
  const auto table = table_of(written.path("monitor.csv"));
  REQUIRE(table.size() > 10);
  for (size_t row = 1; row < table.size(); ++row) {
    const double ran = std::stod(cell(table, row, "gpu_utilization"));
    CHECK(ran >= std::stod(cell(table, row, "working")));
    CHECK(ran <= 1 + 1e-9);
    CHECK(std::stoll(cell(table, row, "memory_allocated_bytes")) >= 0);
  }
  // Parameters and gradients of 10 numbers at least.
  CHECK(std::stoll(cell(table, table.size() / 2, "memory_allocated_bytes")) >= 40);
}

TEST_CASE("long trainings have a bounded number of rows") {
  const Written written(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: resnet50}\n"
      "data: {train: {batches: 500000, batch_size: 32}}\n"
      "trainer: {accelerator: gpu, devices: 1, max_epochs: 1, log_every_n_steps: 10}\n");
  // 50,000 rows, of which each fifth is kept.
  CHECK(written.told.find("one every 50 steps") != std::string::npos);
  const auto table = table_of(written.path("metrics.csv"));
  CHECK(table.size() == 1 + 10'000);
  CHECK(cell(table, 1, "step") == "49");
  CHECK(cell(table, 10'000, "step") == "499999");
  const auto monitor = table_of(written.path("monitor.csv"));
  CHECK(monitor.size() <= 1 + 500);
}

TEST_CASE("equal runs give equal bytes") {
  const Written first(small);
  const Written second(small);
  for (const char* name : {"metrics.csv", "monitor.csv", "events.out.tfevents.0.lockstep"}) {
    CHECK(text_of_file(first.path(name)) == text_of_file(second.path(name)));
    CHECK_FALSE(text_of_file(first.path(name)).empty());
  }
}

namespace {

// 4 steps per epoch; rank 3 is lost at step 10, and the last checkpoint is that of step 8.
const std::string restarted = R"(version: 1
cluster: {preset: dgx-a100, nodes: 1}
launcher: {torchrun: {nproc_per_node: 4, max_restarts: 1}}
model: {input: [8], layers: [{Linear: [8, 2]}], loss: MSELoss}
optimizer: {SGD: {lr: 0.25}}
data: {batch_size: 4, train: {samples: 64}}
trainer:
  accelerator: gpu
  devices: 4
  strategy: ddp
  max_epochs: 4
  num_sanity_val_steps: 0
  limit_val_batches: 0
  log_every_n_steps: 2
  callbacks: [{ModelCheckpoint: {dirpath: checkpoints, save_last: true}}]
faults: [{lost_rank: {rank: 3, at: step 10}}]
program:
  main: [{fit: {ckpt_path: last}}]
  training_step: [forward, {log: {name: train_loss, value: loss}}]
)";

std::vector<std::string> column(const std::vector<std::vector<std::string>>& table,
                                const std::string& title) {
  std::vector<std::string> cells;
  for (size_t row = 1; row < table.size(); ++row) {
    cells.push_back(cell(table, row, title));
  }
  return cells;
}

}  // namespace

TEST_CASE("each attempt of a job that restarts has a folder, with times since its start") {
  const Written written(restarted);
  const auto first = table_of(written.path("attempt_0/metrics.csv"));
  const auto second = table_of(written.path("attempt_1/metrics.csv"));
  CHECK(column(first, "step") == std::vector<std::string>{"1", "3", "5", "7", "9"});
  CHECK(column(first, "epoch") == std::vector<std::string>{"0", "0", "1", "1", "2"});
  CHECK(column(second, "step") == std::vector<std::string>{"9", "11", "13", "15"});
  CHECK(column(second, "epoch") == std::vector<std::string>{"2", "2", "3", "3"});
  // torchrun waits 30 s for the ranks that hang in a collective.
  CHECK(std::stod(cell(first, 5, "time_s")) < 1);
  CHECK(std::stod(cell(second, 1, "time_s")) > 30);
  CHECK(std::filesystem::exists(written.path("attempt_1/events.out.tfevents.0.lockstep")));
  CHECK(table_of(written.path("attempt_1/monitor.csv")).size() > 1);
  CHECK_FALSE(std::filesystem::exists(written.path("metrics.csv")));
  CHECK(written.told.find("attempt_0/metrics.csv") != std::string::npos);
}

TEST_CASE("what a resumed attempt computes is logged: steps that are repeated have equal losses") {
  const Written written(restarted);
  const auto first = table_of(written.path("attempt_0/metrics.csv"));
  const auto second = table_of(written.path("attempt_1/metrics.csv"));
  const std::string loss = cell(first, 5, "train_loss");
  CHECK_FALSE(loss.empty());
  CHECK(cell(second, 1, "train_loss") == loss);
}

// A weight from 0, inputs of 1, targets of 1 and -1: a local step gives w / 2 + target / 2, and the
// models are averaged after the steps 1 and 4.
TEST_CASE("where replicas differ by design a column has how far they are apart") {
  const Written written(R"(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [1], layers: [{Linear: {in_features: 1, out_features: 1, bias: false}}],
        initial: {0.weight: 0}, loss: MSELoss}
optimizer: {SGD: {lr: 0.25}}
data: {train: {batch_size: 1, sampler: distributed, shuffle: false,
               inputs: [[1], [1], [1], [1], [1], [1], [1], [1]],
               targets: [[1], [-1], [1], [-1], [1], [-1], [1], [-1]]}}
trainer: {accelerator: gpu, devices: 2, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0, log_every_n_steps: 1, strategy: {DDPStrategy: {
          ddp_comm_hook: noop_hook,
          ddp_comm_state: {start_localSGD_iter: 0}, model_averaging_period: 3}}}
)");
  const auto table = table_of(written.path("metrics.csv"));
  REQUIRE(table.size() == 5);
  const std::vector<std::string> apart{"0", "1", "1.5", "0"};
  for (size_t row = 1; row < table.size(); ++row) {
    CHECK(cell(table, row, "weights_apart") == apart[row - 1]);
  }
}

}  // namespace write_logs_test
