// The table of one training under several strategies.
#include "cli/render/render_strategies.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "model/trainer/framework/compared_strategies.hpp"
#include "model/trainer/framework/strategy_choice.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace strategies_test {

namespace {

std::vector<std::string> lines_of_table(const std::vector<std::string>& names, bool verified,
                                        const std::string& lightning = "2.0") {
  std::vector<Job> jobs;
  for (const std::string& name : names) {
    // A Linear of 1024 x 1024 with its bias: 1,049,600 parameters.
    Collected collected = collect(source_of_text(
        "version: 1\n"
        "versions: {lightning: \"" +
        lightning +
        "\"}\n"
        "cluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {input: [1024], layers: [{Linear: [1024, 1024]}], loss: MSELoss}\n"
        "optimizer: SGD\n"
        "data: {train: {samples: 64, batch_size: 2}}\n"
        "trainer: {accelerator: gpu, devices: 4, max_steps: 3, num_sanity_val_steps: 0, "
        "limit_val_batches: 0, strategy: " +
        name + "}\nverify: {numerics: false}\n"));
    REQUIRE(collected.diagnostics.empty());
    jobs.push_back(std::move(collected.jobs.front()));
  }
  RehearseRequest request;
  request.explore = false;
  rehearse_all(jobs, request, Judges::quantities, 1);
  std::vector<UnderStrategy> rows;
  for (size_t index = 0; index < names.size(); ++index) {
    rows.push_back({names[index], &jobs[index].result});
  }
  std::istringstream text(render_strategies(rows, verified, Style{}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const bool goes_on = line.starts_with("        ");  // of a reason why there are no figures
    if (goes_on) {
      CHECK(line.size() <= lines[1].size());
      lines.back() += " " + line.substr(line.find_first_not_of(' '));
    } else {
      lines.push_back(line);
    }
  }
  // A heading, titles, and two that explain them; one more where batch sizes differ.
  REQUIRE(lines.size() >= names.size() + 4);
  REQUIRE(lines.size() <= names.size() + 5);
  return {lines.begin() + 2, lines.end() - 2};
}

bool shows(const std::string& line, const std::string& words) {
  return line.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("each strategy is a line with its figures, or with why it has none") {
  const std::vector<std::string> lines = lines_of_table(
      {"ddp", "single_device", "horovod", "{PipelineStrategy: {schedule: SpecTrain}}"}, false);
  // 2 samples of each of 4 ranks. An all_reduce of 1,049,600 numbers of 4 bytes goes round a ring
  // of 4 twice, each time without the own quarter: 6.0 MiB.
  CHECK(shows(lines[0], "ddp "));
  CHECK(shows(lines[0], " 8 "));
  CHECK(shows(lines[0], "6.0 MiB"));
  CHECK(shows(lines[1], " 2 "));
  CHECK(shows(lines[1], " 0 B"));
  CHECK(shows(lines[2], "refused, LS501: "));
  CHECK(shows(lines[3], "not modelled: the schedule SpecTrain is not modelled"));
  // Steps of 8 and of 2 samples: a line says that convergence is not modelled.
  REQUIRE(lines.size() == 5);
  CHECK(shows(lines[4], "samples: of a step"));  // the last two are cut off
  CHECK(lines_of_table({"ddp", "ddp_spawn"}, false).size() == 2);
}

TEST_CASE("what a parameter server sends in a step is its answers to all workers") {
  // Of 4 ranks 3 are workers. Each is sent the model of 1,049,600 numbers of 4 bytes: 12.0 MiB.
  CHECK(shows(lines_of_table({"parameter_server"}, false).front(), " 12.0 MiB"));
}

TEST_CASE("samples of a step are those of all workers, however many make an update") {
  // 2 samples of each of 3 workers.
  for (const char* mode : {"sync", "async", "batched, batch: 3"}) {
    const std::string name = std::string("{ParameterServerStrategy: {mode: ") + mode + "}}";
    INFO(name);
    CHECK(shows(lines_of_table({name}, false).front(), "  6  "));
  }
}

TEST_CASE("a line of verify says what was found") {
  CHECK(shows(lines_of_table({"ddp"}, true).front(), "no findings"));
}

TEST_CASE("the strategies to compare are each known, once") {
  std::set<std::string> seen;
  ComparedTraining training;
  training.devices = 2;
  for (const ComparedStrategy& compared : strategies_to_compare(training)) {
    CAPTURE(compared.label);
    CHECK(seen.insert(compared.label).second);
    if (compared.text() != compared.label) {
      CHECK(seen.insert(compared.text()).second);
    }
    StrategySituation situation;
    situation.devices = 2;
    const StrategyChoice choice =
        choose_strategy(compared.strategy, situation, standard_strategies());
    // Refused by this version, or one of ours.
    CHECK((!choice.refusal.empty() || standard_strategies().find(choice.name) != nullptr));
  }
}

TEST_CASE("what is compared follows from the machine and the batch") {
  const auto find = [](const ComparedTraining& training, const std::string& strategy) {
    const std::vector<ComparedStrategy> all = strategies_to_compare(training);
    const auto found = std::ranges::find(all, strategy, &ComparedStrategy::strategy);
    return found == all.end() ? ComparedStrategy{} : *found;
  };
  ComparedTraining training;
  training.devices = 8;
  training.nodes = 2;
  training.batch_size = 12;
  // Of at most 16 micro-batches, as many as divide 12.
  CHECK(find(training, "PipelineStrategy").arguments == "n_microbatches: 12, schedule: GPipe");
  training.batch_size = 40;
  CHECK(find(training, "PipelineStrategy").arguments == "n_microbatches: 10, schedule: GPipe");
  CHECK(find(training, "xla").label.empty());
  training.nodes = 1;
  training.device = DeviceType::tpu;
  CHECK(strategies_to_compare(training)[1].strategy == "xla");
  training.lightning = {1, 9, 0};
  CHECK(strategies_to_compare(training)[1].strategy == "TPUSpawnStrategy");
}

// An all_reduce of 1,049,600 x 4 bytes sends 6,297,600 of them round a ring of 4.
TEST_CASE("what is sent in a step is the mean where not every step exchanges the same") {
  const auto table = [](const std::string& strategy, int steps) {
    std::vector<Job> jobs = rehearsed(
        "version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {input: [1024], layers: [{Linear: [1024, 1024]}], loss: MSELoss}\n"
        "optimizer: SGD\nverify: {numerics: false}\n"
        "data: {train: {samples: 8000, batch_size: 2}}\n"
        "trainer: {accelerator: gpu, devices: 4, num_sanity_val_steps: 0, limit_val_batches: 0, "
        "enable_checkpointing: false, max_steps: " +
            std::to_string(steps) + ", strategy: " + strategy + "}\n",
        Judges::quantities);
    const Rehearsal& rehearsal = jobs.front().result;
    REQUIRE(rehearsal.ran());
    return std::pair(rehearsal.results,
                     render_strategies({{"tried", &rehearsal, {}}}, false, Style{}));
  };
  const auto [averaging, text] = table(
      "{DDPStrategy: {ddp_comm_hook: noop_hook, model_averaging_period: 4, outer_optimizer: {lr: "
      "1, momentum: 0}}}",
      14);
  REQUIRE(averaging.ranks.front().mean_sent);
  // Once in four steps 1,049,600 numbers of 4 bytes, of which a ring of four sends 3/2; in each the
  // 8 bytes of DDP's map of used parameters, which Lightning 1.9 asks for.
  CHECK(averaging.ranks.front().mean_sent->bytes.count() == (6'297'600 + 4 * 12) / 4);
  CHECK(shows(text, " 1.5 MiB"));
  CHECK(shows(text, "tried: sent in a step on average over 4 steps, as not every step"));
  // A round takes at least the millisecond that the thread sleeps, and about a step more.
  const auto [rounds, rows] =
      table("{BaguaStrategy: {algorithm: async, sync_interval_ms: 1}}", 400);
  REQUIRE(rounds.ranks.front().mean_sent);
  const MeanSent mean = *rounds.ranks.front().mean_sent;
  CHECK(mean.steps == 399);
  const double taken = static_cast<double>(mean.bytes.count() * mean.steps) / 6'297'600;
  const double most = seconds(rounds.prediction.total_time) / 1e-3;
  CHECK(taken > most / 2);
  CHECK(taken < most + 1);
  CHECK(shows(rows, "tried: sent in a step on average over the 399 steps in which its thread"));
  const auto [every_step, plain] = table("ddp", 14);
  CHECK(!every_step.ranks.front().mean_sent);
  CHECK(!shows(plain, "on average"));
}

TEST_CASE("the row of qadam is behind its warm-up, which is the row of bagua") {
  const std::vector<ComparedStrategy> all = strategies_to_compare({});
  const auto row = std::ranges::find(all, "bagua, qadam", &ComparedStrategy::label);
  REQUIRE(row != all.end());
  CHECK(row->settings == std::vector<std::string>{"optimizer={QAdamOptimizer: {warmup_steps: 1}}"});
  CHECK(shows(row->note, "behind a warm-up of one step"));
}

// All of it in fp32: 1,049,600 x 4 bytes are 4.004 MiB, and SGD keeps nothing. Of DDP only the
// batches lie in host memory: 2 x 2 x 1024 x 4 bytes.
TEST_CASE("a checkpoint that is gathered to rank 0 shows in the host memory per rank") {
  const std::vector<std::string> lines = lines_of_table({"ddp", "fsdp"}, false, "2.6");
  CHECK(shows(lines[0], " 16.0 KiB "));
  CHECK(shows(lines[1], " 4.0 MiB  "));
}

TEST_CASE("why a strategy has no figures stands in their place") {
  const std::vector<std::string> lines =
      lines_of_table({"ddp", "{PipelineStrategy: {schedule: SpecTrain}}"}, false, "2.6");
  CHECK(shows(lines[1], "}}  not modelled: "));
}

}  // namespace strategies_test
