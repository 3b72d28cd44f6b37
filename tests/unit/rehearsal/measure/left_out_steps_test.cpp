// Steps that were left out, and how often each simulated one stands for them.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/program/journal.hpp"
#include "rehearsal/measure/step_sequence.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::left_out_steps_test {
namespace {

std::vector<int64_t> times_of_row(const std::vector<RepeatedRows>& repeated, int64_t row) {
  return times_repeated(
      repeated, [row](const RepeatedRows& rows) { return rows.begin <= row && row < rows.end; });
}

// Directly behind what is repeated; what was left out before, from an entry on, lies within it.
RepeatedRows behind_itself(int64_t begin, int64_t end, int64_t periods, int64_t first_inner,
                           int64_t end_inner) {
  return {end, begin, end, periods, 1_us, 1_us, first_inner, end_inner};
}

TEST_CASE("a period that lies in another is repeated with it") {
  // Rows 0-9 twice more, then rows 0-19, in which that lies, three times more.
  const std::vector<RepeatedRows> nested = {behind_itself(0, 10, 2, 0, 0),
                                            behind_itself(0, 20, 3, 0, 1)};
  CHECK(times_of_row(nested, 5) == std::vector<int64_t>{2, 9});
  CHECK(times_of_row(nested, 15) == std::vector<int64_t>{0, 3});
}

TEST_CASE("what is left out where a period begins lies in it, or before it") {
  // Rows 0-9 twice more, then rows 10-19 three times more. In the first list the period of the
  // second entry began before the first entry was left out, in the other list behind it.
  const std::vector<RepeatedRows> within = {behind_itself(0, 10, 2, 0, 0),
                                            behind_itself(10, 20, 3, 0, 1)};
  const std::vector<RepeatedRows> behind = {behind_itself(0, 10, 2, 0, 0),
                                            behind_itself(10, 20, 3, 1, 1)};
  CHECK(times_of_row(within, 5) == std::vector<int64_t>{2, 6});
  CHECK(times_of_row(behind, 5) == std::vector<int64_t>{2, 0});
  CHECK(times_of_row(within, 15) == times_of_row(behind, 15));
}

TEST_CASE("a period that lies long ago is repeated with what was left out in it, and no more") {
  // Rows 0-9 twice more, then rows 10-19 three times more; before row 40 rows 0-9 with those two.
  const std::vector<RepeatedRows> apart = {behind_itself(0, 10, 2, 0, 0),
                                           behind_itself(10, 20, 3, 1, 1),
                                           {40, 0, 10, 1, 3_us, 9_us, 0, 1}};
  CHECK(times_of_row(apart, 5) == std::vector<int64_t>{2, 0, 3});
  CHECK(times_of_row(apart, 15) == std::vector<int64_t>{0, 3, 0});
}

using test::predicted;

// Rows of the logger fall on other batches in each of 25 epochs.
TEST_CASE("a program that logs leaves out steps between rows, and counts all of them") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
      "data: {train: {samples: 12520, batch_size: 10}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 50}\n"
      "program: {training_step: [{log: {name: l, value: loss, on_step: true, on_epoch: true}}]}\n";
  const Prediction prediction = predicted(text).results.prediction;
  CHECK(prediction.steps == 50 * 626);
  CHECK(prediction.simulated_steps < 50 * 626 / 4);
}

// A row in each fourth of 401 steps; the rate is halved after each ten steps.
TEST_CASE("a LearningRateMonitor has a row for each step that is due, also where it is left out") {
  const Rehearsal ran = predicted(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
      "data: {train: {samples: 3208, batch_size: 4}}\noptimizer: {SGD: {lr: 1.0}}\n"
      "lr_scheduler: {StepLR: {step_size: 10, gamma: 0.5, interval: step}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
      "log_every_n_steps: 4, callbacks: [LearningRateMonitor]}\n");
  CHECK(ran.results.prediction.simulated_steps < 100);
  const LoggerLog& logger = ran.run.preparation.log->ranks.front().logger;
  CHECK(logger.row_count == 100);
  CHECK(logger.rows_before_gap == 0);
  REQUIRE(logger.rows.size() == 100);
  for (size_t row = 0; row < logger.rows.size(); ++row) {
    const auto step = 4 * static_cast<int64_t>(row) + 3;
    CHECK(logger.rows[row].step == step);
    CHECK(logger.rows[row].values.at("lr-SGD") == std::pow(0.5, step / 10));
  }
}

// 28 steps in an epoch of 84 batches, 476 in all, of which 158 are multiples of three.
TEST_CASE("checkpoints are counted by steps, where a step takes several batches by hand") {
  const Rehearsal ran = predicted(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
      "data: {train: {samples: 84, batch_size: 1}}\n"
      "trainer: {accelerator: gpu, devices: 1, max_epochs: 17, "
      "callbacks: [{ModelCheckpoint: {every_n_train_steps: 3, filename: \"{step}\"}}]}\n"
      "program: {automatic_optimization: false, training_step: [forward, backward, "
      "{if: batch_idx % 3 == 2, then: [optimizer_step, zero_grad]}]}\n");
  CHECK(ran.results.prediction.steps == 476);
  CHECK(ran.run.preparation.log->ranks.front().checkpoints.front().saved == 158);
}

Rehearsal with_validation(int64_t batches, bool all_steps) {
  return predicted(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: resnet50}\n"
      "data: {train: {batches: 2, batch_size: 64}, val: {batches: " +
      std::to_string(batches) +
      ", batch_size: 64}}\n"
      "verify: {numerics: false, all_steps: " +
      (all_steps ? "true" : "false") +
      "}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
      "num_sanity_val_steps: 0}\n");
}

TEST_CASE("a step across epochs exchanges as much, where left-out steps end within its batches") {
  // 23 batches of an epoch: the last three and the first four of the next make a step of seven.
  const auto transfers_of_step = [](const std::string& verify) {
    const Rehearsal ran = std::move(
        test::rehearsed(
            "version: 1\ncluster: {preset: dgx-a100, nodes: 3}\n"
            "model: {layers: [{Linear: [16, 24]}, GELU, {Linear: [24, 24]}, ReLU, {Linear: [24, "
            "3]}], input: [16]}\noptimizer: {AdamW: {lr: 1e-3}}\n"
            "data: {train: {samples: 1100, batch_size: 4}, val: {samples: 130, batch_size: 4}}\n"
            "trainer: {accelerator: gpu, devices: 4, num_nodes: 3, strategy: ddp, max_epochs: 7, "
            "log_every_n_steps: 7}\n"
            "program:\n  automatic_optimization: false\n  training_step:\n    - forward\n"
            "    - zero_grad\n    - backward\n"
            "    - {if: batch_idx % 4 == 3, then: [optimizer_step]}\n" +
            verify)
            .front()
            .result);
    CHECK(ran.results.prediction.steps == 35);
    std::map<std::string, int64_t> counts;
    for (const TransferCount& transfer : ran.results.ranks.front().transfers) {
      counts[std::string(name_of(transfer.kind))] += transfer.count;
    }
    return counts;
  };
  const auto folded = transfers_of_step("verify: {numerics: false}\n");
  CHECK(folded.at("broadcast") == 7);
  CHECK(folded ==
        transfers_of_step("verify: {numerics: false, all_steps: true, all_ranks: true}\n"));
}

// Nothing waits for the device in a validation, so the host is ahead until the queue of launches is
// full, and a call of the training that came before lies ever further back.
TEST_CASE("batches of a validation are left out while the host runs ahead") {
  const Rehearsal shorter = with_validation(60, false);
  const Rehearsal longer = with_validation(90, false);
  const Rehearsal whole = with_validation(90, true);
  CHECK(longer.run.result.simulated_operations == shorter.run.result.simulated_operations);
  CHECK(longer.run.result.simulated_operations < whole.run.result.simulated_operations / 3);
  CHECK(longer.results.prediction.total_time == whole.results.prediction.total_time);
  CHECK(longer.results.ranks.front().memory.peak == whole.results.ranks.front().memory.peak);
}

// Four tensors of each rank are averaged by a thread that goes on between the steps.
TEST_CASE("steps of Horovod are left out, whose thread says where it stands") {
  const auto trained = [](bool all_steps) {
    return predicted(
        "version: 1\nversions: {lightning: \"1.6\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {preset: mlp}\ndata: {train: {samples: 16_000, batch_size: 8}}\n"
        "verify: {numerics: false, all_steps: " +
        std::string(all_steps ? "true" : "false") +
        "}\n"
        "trainer: {accelerator: gpu, devices: 4, strategy: horovod, max_epochs: 3}\n");
  };
  const Rehearsal some = trained(false);
  const Rehearsal all = trained(true);
  CHECK(all.results.prediction.simulated_steps == 1'500);
  CHECK(some.results.prediction.steps == 1'500);
  CHECK(some.results.prediction.simulated_steps < 50);
  CHECK(some.results.prediction.total_time == all.results.prediction.total_time);
  CHECK(some.results.prediction.breakdown.communication ==
        all.results.prediction.breakdown.communication);
  CHECK(some.results.ranks.front().memory.peak == all.results.ranks.front().memory.peak);
  CHECK(some.results.ranks.front().transfers == all.results.ranks.front().transfers);
}

Rehearsal with_stragglers(const std::string& faults, bool all_steps) {
  return predicted(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\nmodel: {preset: resnet50}\n"
      "data: {train: {samples: 1_000_000, batch_size: 64}}\n"
      "verify: {numerics: false, all_steps: " +
      std::string(all_steps ? "true" : "false") +
      "}\n"
      "trainer: {accelerator: gpu, devices: 3, num_nodes: 2, strategy: ddp, max_steps: 40, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}\n"
      "faults:\n" +
      faults);
}

TEST_CASE("steps of ranks that are slow all the time are left out") {
  const std::string slow =
      "  - {straggler: {slowdown: 1.3, rank: 1}}\n"
      "  - {straggler: {slowdown: 1.07, ranks: [2, 4]}}\n";
  const Rehearsal some = with_stragglers(slow, false);
  const Rehearsal all = with_stragglers(slow, true);
  CHECK(some.results.prediction.simulated_steps < 20);
  CHECK(all.results.prediction.simulated_steps == 40);
  CHECK(some.results.prediction.total_time == all.results.prediction.total_time);
  CHECK(some.run.result.struck_faults == all.run.result.struck_faults);
  CHECK(some.run.result.struck_faults.size() == 3);
}

TEST_CASE("steps before and behind the beginning and the end of a fault are left out") {
  for (const char* slow : {"  - {straggler: {slowdown: 1.3, rank: 1, at: 2 s}}\n",
                           "  - {straggler: {slowdown: 1.3, rank: 1, for: 2 s}}\n",
                           "  - {straggler: {slowdown: 1.3, rank: 1, at: step 20}}\n"}) {
    CAPTURE(slow);
    const Rehearsal some = with_stragglers(slow, false);
    const Rehearsal all = with_stragglers(slow, true);
    CHECK(some.results.prediction.simulated_steps < 20);
    CHECK(all.results.prediction.simulated_steps == 40);
    CHECK(some.results.prediction.total_time == all.results.prediction.total_time);
    CHECK(some.run.result.struck_faults == all.run.result.struck_faults);
  }
}

// 80 samples on two ranks: 40 batches of one on rank 0, 20 batches of two on rank 1.
// A number that names no rank is the same on all, under servers, too.
TEST_CASE("steps are left out where the loader says how many batches there are") {
  for (const char* strategy : {"ddp", "{ParameterServerStrategy: {mode: sync, servers: 1}}"}) {
    CAPTURE(strategy);
    const auto counted = [strategy](const char* all_steps) {
      return predicted(
          "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
          "model: {input: [6], layers: [{Linear: [6, 3]}], loss: MSELoss}\n"
          "data: {train: {batches: 300, batch_size: 2}}\n"
          "trainer: {accelerator: gpu, devices: 3, strategy: " +
          std::string(strategy) +
          ", max_epochs: 2, log_every_n_steps: 7}\n"
          "program: {training_step: [forward, {log: {name: loss, value: loss}}]}\n"
          "verify: {numerics: false, all_steps: " +
          std::string(all_steps) + "}\n");
    };
    const Rehearsal some = counted("false");
    const Rehearsal all = counted("true");
    CHECK(some.results.prediction.simulated_steps < 60);
    CHECK(all.results.prediction.simulated_steps == 600);
    CHECK(some.results.prediction.total_time == all.results.prediction.total_time);
  }
}

// The host is 340 us ahead of the device when the slow time of 120 us ends.
TEST_CASE("a host that runs ahead repeats no step whose work a fault has not left yet") {
  const auto ends_of_steps = [](const char* all_steps) {
    const Rehearsal slow = predicted(
        "version: 1\ncluster: {preset: cpu}\n"
        "model: {input: [6], layers: [{Linear: [6, 9]}, ReLU, {Linear: [9, 5]}, {Linear: [5, 3]}], "
        "loss: MSELoss}\n"
        "data: {train: {samples: 24, batch_size: 1}}\n"
        "trainer: {accelerator: cpu, devices: 1, max_epochs: 17, log_every_n_steps: 7}\n"
        "program: {training_step: [forward, {log: {name: loss, value: loss, on_epoch: true}}]}\n"
        "faults: [{straggler: {slowdown: 40, rank: 0, at: 7000 us, for: 120 us}}]\n"
        "verify: {numerics: false, all_steps: " +
        std::string(all_steps) + "}\n");
    const Journal& journal = *slow.run.result.journal;
    const std::vector<StepMark> steps = steps_of(journal, 0);
    const StepSequence sequence(journal.repeated_on(0, 0), steps);
    std::vector<Time> ends;
    for (int64_t step = 0; step < sequence.size(); ++step) {
      ends.push_back(sequence.at(step).finish);
    }
    return ends;
  };
  const auto ends = ends_of_steps("false");
  CHECK(ends.size() == 408);
  CHECK(ends == ends_of_steps("true"));
}

TEST_CASE("a rank that is slow is one of its own, and others still run for all that are not") {
  const auto slow = [](const char* faults, const char* all_ranks) {
    return predicted(
        "version: 1\ncluster: {preset: dgx-a100, nodes: 8}\n"
        "model: {input: [6], layers: [{Linear: [6, 3]}], loss: MSELoss}\n"
        "data: {train: {batches: 5, batch_size: 2}}\n"
        "trainer: {accelerator: gpu, devices: 8, num_nodes: 8, strategy: ddp, max_epochs: 1}\n"
        "faults: [" +
        std::string(faults) + "]\nverify: {numerics: false, all_steps: true, all_ranks: " +
        std::string(all_ranks) + "}\n");
  };
  for (const auto& [faults, struck] : std::vector<std::pair<const char*, size_t>>{
           {"{straggler: {rank: 37, slowdown: 1000}}", 1},
           {"{straggler: {ranks: [21, 37], slowdown: 1000, at: step 2}}", 2},
           {"{straggler: {ranks: all, slowdown: 1000}}", 64}}) {
    CAPTURE(faults);
    const Rehearsal some = slow(faults, "false");
    const Rehearsal all = slow(faults, "true");
    CHECK(some.results.prediction.simulated_ranks < 16);
    CHECK(all.results.prediction.simulated_ranks == 64);
    CHECK(some.results.prediction.total_time == all.results.prediction.total_time);
    CHECK(some.run.result.struck_faults == all.run.result.struck_faults);
    CHECK(some.run.result.struck_faults.size() == struck);
  }
  const Rehearsal even = slow("", "false");
  const Rehearsal uneven = slow("{straggler: {rank: 37, slowdown: 1000}}", "false");
  CHECK(uneven.results.prediction.total_time > even.results.prediction.total_time);
}

}  // namespace
}  // namespace lockstep::cli::left_out_steps_test
