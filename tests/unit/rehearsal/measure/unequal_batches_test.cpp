// Ranks with unequal numbers of batches: what is left out, and for whom others run.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "rehearsal/measure/step_samples.hpp"
#include "rehearsal/run/steps_of_run.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::unequal_batches_test {
namespace {

using test::predicted;

/// The same with every step and rank, and with those that differ.
struct Both {
  Rehearsal some;
  Rehearsal all;
};

// Lightning 2.5 asks for signals before each batch, which a rank that has joined does not mirror.
Both rehearsed(const std::string& train, const std::string& trainer, const std::string& more = "",
               int nodes = 1) {
  const auto with = [&](bool everything) {
    return predicted(
        fmt::format("version: 1\nversions: {{lightning: \"2.4\"}}\n"
                    "cluster: {{preset: dgx-a100, nodes: {0}}}\n"
                    "model: {{input: [6], layers: [{{Linear: [6, 3]}}], loss: MSELoss}}\n"
                    "data: {{train: {{{1}}}}}\n"
                    "trainer: {{accelerator: gpu, num_nodes: {0}, {2}}}\n{3}"
                    "verify: {{numerics: false, all_steps: {4}, all_ranks: {4}}}\n",
                    nodes, train, trainer, more, everything));
  };
  return {with(false), with(true)};
}

int64_t steps_of_rank(const Rehearsal& rehearsal, int32_t rank) {
  return count_steps(steps_of(*rehearsal.run.result.journal, rank));
}

// 80 samples for two ranks: rank 0 has 40 batches of one, rank 1 has 20 of two.
TEST_CASE("steps are left out until the batches of the first rank end") {
  const Both both = rehearsed("samples: 80, batch_size: 1 + rank % 2",
                              "devices: 2, strategy: ddp, max_epochs: 1");
  REQUIRE(both.all.run.result.hung);
  REQUIRE(both.some.run.result.hung);
  CHECK(steps_of_rank(both.all, 1) == 20);
  CHECK(steps_of_rank(both.some, 1) == 20);
  CHECK(steps_of(*both.some.run.result.journal, 1).size() < 15);
  REQUIRE_FALSE(both.some.findings.empty());
  CHECK(both.some.findings.front().title == both.all.findings.front().title);
  CHECK(both.some.findings.front().call == both.all.findings.front().call);
}

TEST_CASE("no steps are left out where the number of batches is not known before the run") {
  const Both both = rehearsed("batches: \"20 + (random() < 0)\", batch_size: 1",
                              "devices: 2, strategy: ddp, max_epochs: 1");
  REQUIRE(both.some.run.ran);
  CHECK(steps_of_rank(both.some, 1) == 20);
  CHECK(both.some.run.result.journal->repeated.empty());
  CHECK(both.some.run.preparation.repetition.why_not ==
        "how many batches ranks have is not known before the run");
}

// Three epochs: 300 batches on most ranks, 250 on the other one.
TEST_CASE("steps that a rank without data mirrors are left out as well") {
  for (const int32_t few : {0, 1}) {
    CAPTURE(few);
    const Both both = rehearsed(fmt::format("batches: 300 - 50 * (rank == {}), batch_size: 2", few),
                                "devices: 2, strategy: {DDPStrategy: {join: true}}, max_epochs: 3");
    REQUIRE_FALSE(both.some.run.result.hung);
    CHECK(both.some.findings.empty());
    CHECK(steps_of_rank(both.some, few) == 750);
    CHECK(steps_of_rank(both.some, 1 - few) == 900);
    CHECK(steps_of(*both.some.run.result.journal, 0).size() < 150);
    CHECK(both.some.run.result.total_time == both.all.run.result.total_time);
    CHECK(both.some.results.prediction.samples_per_s == both.all.results.prediction.samples_per_s);
  }
}

// Rows fall on other steps of each rank in later epochs, which are simulated: 2 epochs of 300.
TEST_CASE("where epochs matter, ranks of unequal numbers of batches leave out steps of the first") {
  const Both both =
      rehearsed("batches: 300 - 50 * (rank == 1), batch_size: 2",
                "devices: 2, strategy: {DDPStrategy: {join: true}}, max_epochs: 3",
                "program: {training_step: [forward, {log: {name: one, value: 1.0}}]}\n");
  CHECK(steps_of_rank(both.some, 0) == 900);
  const size_t simulated = steps_of(*both.some.run.result.journal, 0).size();
  CHECK(simulated >= 600);
  CHECK(simulated < 700);
  CHECK(both.some.run.result.total_time == both.all.run.result.total_time);
}

// 645 samples for 64 ranks: ranks 0 to 4 have eleven, all others ten.
TEST_CASE("ranks that get as many samples of a sampler that repeats none do the same") {
  const Both both = rehearsed("samples: 645, batch_size: 1, sampler: unrepeated",
                              "devices: 8, strategy: fsdp, max_epochs: 1", "", 8);
  REQUIRE(both.all.run.result.hung);
  REQUIRE(both.some.run.result.hung);
  CHECK(both.some.results.prediction.simulated_ranks < 32);
  CHECK(both.all.results.prediction.simulated_ranks == 64);
  REQUIRE_FALSE(both.some.findings.empty());
  CHECK(both.some.findings.front().ranks == both.all.findings.front().ranks);
  CHECK(both.some.findings.front().title.starts_with(
      "ranks 0-4 run a training batch that ranks 5-63 do not have"));
}

// Of 645 samples ranks 0 to 4 test eleven, whatever limits validation.
TEST_CASE("ranks that get as many samples of a test do the same") {
  const auto with = [](bool everything) {
    return predicted(fmt::format(
        "version: 1\ncluster: {{preset: dgx-a100, nodes: 8}}\n"
        "model: {{input: [6], layers: [{{Linear: [6, 3]}}], loss: MSELoss}}\n"
        "data: {{train: {{samples: 640, batch_size: 1}}, test: {{samples: 645, batch_size: 1, "
        "sampler: unrepeated}}}}\n"
        "trainer: {{accelerator: gpu, num_nodes: 8, devices: 8, strategy: ddp, max_epochs: 1, "
        "limit_val_batches: 0}}\n"
        "program: {{main: [fit, test], test_step: [forward, {{kernel: 1 ms}}]}}\n"
        "verify: {{numerics: false, all_ranks: {}}}\n",
        everything));
  };
  const Rehearsal some = with(false);
  const Rehearsal all = with(true);
  CHECK(some.results.prediction.simulated_ranks < 32);
  REQUIRE(all.results.prediction.simulated_ranks == 64);
  CHECK(some.run.result.total_time == all.run.result.total_time);
  for (size_t rank = 0; rank < 64; ++rank) {
    CAPTURE(rank);
    CHECK(some.run.preparation.log->ranks[rank].samples.back().samples.size() ==
          (rank < 5 ? 11 : 10));
  }
}

// Whose model all take in the end is the highest rank of those that joined last: rank 63, or 62.
TEST_CASE("ranks that join at the same time do the same, but for the highest") {
  for (const char* batches : {"10 - (rank % 2)", "10 - (rank % 2 == 0)"}) {
    CAPTURE(batches);
    const Both both =
        rehearsed(fmt::format("batches: \"{}\", batch_size: 1", batches),
                  "devices: 8, strategy: {DDPStrategy: {join: true}}, max_epochs: 2", "", 8);
    REQUIRE_FALSE(both.some.run.result.hung);
    CHECK(both.some.results.prediction.simulated_ranks < 32);
    CHECK(both.some.run.result.total_time == both.all.run.result.total_time);
    CHECK(both.some.findings.empty());
  }
}

TEST_CASE("the steps of others that a rank mirrors are none of its own") {
  RunLog log(2, nullptr);
  log.ranks[0].samples_of_steps = {4, 4, RankLog::mirrored_step, 4};
  log.ranks[1].samples_of_steps = {2, 2, 2, RankLog::mirrored_step};
  CHECK(samples_of_own_steps(log.ranks[0]) == std::vector<int64_t>{4, 4, 4});
  CHECK(samples_of_steps(log, 3) == std::vector<int64_t>{6, 6, 4});
}

TEST_CASE("a step that is under way has no samples yet") {
  RunLog log(1, nullptr);
  log.ranks[0].samples_of_steps = {4, 4};
  CHECK(samples_of_steps(log, 3) == std::vector<int64_t>{4, 4, 0});
  CHECK(samples_of_steps(log, 4) == std::vector<int64_t>{2, 2, 2, 2});
}

// The numbers of a hook count the batches that repeat earlier ones: the 501st is batch 500.
TEST_CASE("a finding counts the turns of a hook that were left out") {
  const Both both = rehearsed(
      "batches: 1000, batch_size: 1", "devices: 2, strategy: ddp, max_epochs: 2",
      "program: {automatic_optimization: false, training_step: [forward, {if: batch_idx != 500 or "
      "rank == 0, then: [backward, optimizer_step, zero_grad]}]}\n");
  REQUIRE_FALSE(both.some.findings.empty());
  CHECK_FALSE(both.some.run.result.journal->repeated.empty());
  CHECK(both.some.findings.front().title.starts_with(
      "rank 0 runs backward of training_step number 501 that rank 1 does not"));
}

// What a hook decides besides is not why: rank 0 has no data left.
TEST_CASE("unequal numbers of batches explain the calls that only some ranks make") {
  const Both both =
      rehearsed("batches: 36 - 6 * (rank == 0), batch_size: 1",
                "devices: 2, strategy: {DDPStrategy: {join: true}}, max_epochs: 1, callbacks: "
                "[{ModelCheckpoint: {every_n_train_steps: 3}}]",
                "program: {on_train_batch_end: [{if: rank == 0, then: [{host: 30 us}]}]}\n");
  REQUIRE_FALSE(both.some.findings.empty());
  CHECK(both.some.findings.front().title.starts_with(
      "rank 1 runs a training batch that rank 0 does not have"));
}

}  // namespace
}  // namespace lockstep::cli::unequal_batches_test
