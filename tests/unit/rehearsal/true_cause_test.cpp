// A finding names the true cause, at its level and with its place in the scenario.
#include <algorithm>
#include <catch2/catch.hpp>

#include "model/strategy/local_model/batch_values.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace true_cause_test {

namespace {

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

const std::string machine = "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n";

// Two ranks that train a little and evaluate `samples`, 8 of batch 4 unless said otherwise.
std::string evaluated(const std::string& program, const std::string& samples = "samples: 8",
                      const std::string& trainer = "max_epochs: 1, num_sanity_val_steps: 0") {
  return machine + "trainer: {accelerator: gpu, devices: 2, strategy: ddp, " + trainer +
         "}\ndata:\n  train: {samples: 16, batch_size: 8}\n  val: {" + samples +
         ", batch_size: 4, values: {error: \"sample * sample\", score: \"(sample * 3 % 10) / "
         "10.0\", "
         "target: \"sample % 3 == 0\"}}\nprogram:\n" +
         program;
}

using Codes = std::vector<std::string>;

Codes codes_of(const Rehearsal& ran) {
  Codes codes;
  std::ranges::transform(ran.findings, std::back_inserter(codes), &Finding::code);
  return codes;
}

const Finding* found(const Rehearsal& ran, const std::string& code) {
  const auto finding = std::ranges::find(ran.findings, code, &Finding::code);
  return finding == ran.findings.end() ? nullptr : &*finding;
}

int line_of(const Rehearsal& ran, const Finding& finding) {
  const Site* const site = ran.sites.find(finding.place);
  return site == nullptr ? 0 : site->line;
}

int line_with(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  return at == std::string::npos
             ? -1
             : static_cast<int>(
                   std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n')) +
                   1;
}

const std::string gathered_mean = R"yaml(
  validation_step: [{append: {self.errors: error}}]
  on_validation_epoch_end:
    - all_gather: {tensor: concat(self.errors), as: gathered}
    - if: is_global_zero
      then: [{log: {name: val_error, value: mean(gathered), rank_zero_only: true}}]
    - let: {self.errors: "[]"}
)yaml";

const std::string gathered_f1 = R"yaml(
  validation_step: [{append: {self.scores: score, self.targets: target}}]
  on_validation_epoch_end:
    - all_gather: {tensor: concat(self.scores), as: scores}
    - all_gather: {tensor: concat(self.targets), as: targets}
    - let: {f1: "binary_f1_score(concat(scores), concat(targets))"}
    - log: {name: val_f1, value: f1, sync_dist: true}
    - let: {self.scores: "[]", self.targets: "[]"}
)yaml";

}  // namespace

TEST_CASE("padding that alone explains a difference from one device is one warning about padding") {
  for (const std::string& program : {gathered_mean, gathered_f1}) {
    const Rehearsal padded = only(evaluated(program, "samples: 7"));  // 8 are evaluated
    REQUIRE(codes_of(padded) == Codes{"LS304"});
    CHECK(padded.findings.front().level == Level::warning);
    CHECK(exit_code_of(padded, false) == ExitCode::ok);
    CHECK(codes_of(only(evaluated(program))).empty());
  }
  // Samples 0 to 6 have errors 0 1 4 9 16 25 36; sample 0 comes twice: 91 / 8 instead of 91 / 7.
  const Rehearsal padded = only(evaluated(gathered_mean, "samples: 7"));
  CHECK(std::ranges::count(padded.findings.front().follows,
                           "`val_error` is 11.375; with each sample once it is 13") == 1);
}

TEST_CASE("what is wrong beside the padding is still found") {
  const Rehearsal averaged = only(
      evaluated("  validation_step: [{log: {name: f1, value: \"binary_f1_score(score, target)\", "
                "sync_dist: true}}]\n",
                "samples: 7"));
  CHECK(found(averaged, "LS301") != nullptr);
  CHECK(found(averaged, "LS304") != nullptr);
  const Rehearsal alone = only(
      evaluated("  validation_step: [{append: {self.errors: error}}]\n"
                "  on_validation_epoch_end:\n"
                "    - log: {name: e, value: mean(concat(self.errors)), rank_zero_only: true}\n"
                "    - let: {self.errors: \"[]\"}\n",
                "samples: 7"));
  CHECK(found(alone, "LS302") != nullptr);
}

TEST_CASE("a list that nothing empties is reported as such, and not as a mean") {
  const std::string keeps = R"yaml(
  validation_step: [{append: {self.scores: score, self.targets: target}}]
  on_validation_epoch_end:
    - all_gather: {tensor: concat(self.scores), as: scores}
    - all_gather: {tensor: concat(self.targets), as: targets}
    - let: {f1: "binary_f1_score(concat(scores), concat(targets))"}
    - log: {name: val_f1, value: f1, sync_dist: true}
)yaml";
  const std::string of_sanity = evaluated(keeps, "samples: 8", "max_epochs: 1");
  const Rehearsal sanity = only(of_sanity);
  CHECK(codes_of(sanity) == Codes{"LS312", "LS312"});  // two lists
  for (const Finding& finding : sanity.findings) {
    CHECK(finding.level == Level::error);
    CHECK(finding.title.find("outputs of the sanity check") != std::string::npos);
  }
  const auto scores = std::ranges::find_if(sanity.findings, [](const Finding& finding) {
    return finding.title.find("`self.scores`") != std::string::npos;
  });
  REQUIRE(scores != sanity.findings.end());
  CHECK(line_of(sanity, *scores) == line_with(of_sanity, "concat(self.scores)"));
  CHECK(scores->python == std::vector<std::string>{"self.scores.clear()"});
  CHECK(scores->topic == FindingTopic::kept_list);
  CHECK(scores->name == "self.scores");
  const Rehearsal epochs =
      only(evaluated(keeps, "samples: 8", "max_epochs: 2, num_sanity_val_steps: 0"));
  REQUIRE(found(epochs, "LS312") != nullptr);
  CHECK(found(epochs, "LS312")->title.find("outputs of earlier epochs") != std::string::npos);
  CHECK(found(epochs, "LS301") == nullptr);
  CHECK(codes_of(only(evaluated(gathered_f1, "samples: 8", "max_epochs: 2"))).empty());
}

TEST_CASE("a plain mean of a list that nothing empties is found, a history of epochs is not") {
  const Rehearsal mean = only(evaluated(R"yaml(
  validation_step: [{append: {self.errors: mean(error)}}]
  on_validation_epoch_end:
    - log: {name: e, value: mean(concat(self.errors)), sync_dist: true}
)yaml",
                                        "samples: 8", "max_epochs: 1"));
  CHECK(codes_of(mean) == Codes{"LS312"});
  const Rehearsal history = only(evaluated(R"yaml(
  on_validation_epoch_end:
    - append: {self.history: 1.0 * epoch}
    - log: {name: e, value: max(self.history), sync_dist: true}
)yaml",
                                           "samples: 8", "max_epochs: 2"));
  CHECK(found(history, "LS312") == nullptr);
}

TEST_CASE("a branch on the rank in training is not compared with one device") {
  const std::string model =
      "model: {input: [4], layers: [{Linear: {in_features: 4, out_features: 8}}, "
      "{Linear: {in_features: 8, out_features: 8, name: middle}}, "
      "{Linear: {in_features: 8, out_features: 2}}]}\n";
  const auto text = [&model](const std::string& step) {
    return machine + model +
           "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, num_sanity_val_steps: 0, "
           "limit_val_batches: 0, strategy: {DDPStrategy: {find_unused_parameters: true}}}\n"
           "data: {train: {samples: 16, batch_size: 4}}\nprogram:\n  training_step:\n" +
           step;
  };
  const std::string skips = text(
      "    - if: rank == 1\n      then: [{forward: {skip: [middle]}}]\n"
      "      else: [forward]\n");
  const Rehearsal ran = only(skips);
  CHECK(codes_of(ran).empty());
  const std::string line = std::to_string(line_with(skips, "if: rank"));
  CHECK(std::ranges::any_of(ran.coverage.not_looked_at, [&line](const std::string& left_out) {
    return left_out == "one device (not judged: the branch on `rank == 1`, line " + line + ")";
  }));
  // A branch that no rank takes changes nothing.
  const Rehearsal never = only(text(
      "    - if: rank == 7\n      then: [{forward: {skip: [middle]}}]\n      else: [forward]\n"));
  CHECK(std::ranges::count(never.coverage.looked_at, "the same samples on one device") == 1);
}

TEST_CASE("levels: killed or wrong is an error, what depends is a warning") {
  const Rehearsal whole = only(machine +
                               "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: "
                               "1, limit_val_batches: 0}\n"
                               "data: {train: {samples: 1003, batch_size: 8, sampler: none}}\n");
  REQUIRE(found(whole, "LS304") != nullptr);
  CHECK(found(whole, "LS304")->level == Level::error);
  CHECK(found(whole, "LS304")->title ==
        "every rank takes the whole data set: epoch 0 trains on each of 1003 samples 2 times");
  const std::string late =
      bare_text(2, "    - if: rank == 0\n      then:\n        - host: 15 min\n    - barrier\n",
                "process_group: {timeout: 10 min}\n");
  const Rehearsal killed = only(late);
  REQUIRE(found(killed, "LS402") != nullptr);
  CHECK(found(killed, "LS402")->level == Level::error);
  CHECK(line_of(killed, *found(killed, "LS402")) == line_with(late, "host: 15 min"));
}

TEST_CASE("every finding has a place: the key or statement that explains the difference") {
  const std::string trainer =
      "trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_epochs: 1, num_sanity_val_steps: "
      "0, limit_val_batches: 0}\n";
  const std::string uneven =
      machine + trainer + "data:\n  train:\n    batch_size: 4\n    batches: 6 + (rank == 3)\n";
  const Rehearsal more = only(uneven);
  REQUIRE(found(more, "LS102") != nullptr);
  CHECK(line_of(more, *found(more, "LS102")) == line_with(uneven, " batches:"));
  CHECK(std::ranges::any_of(found(more, "LS102")->fix, [](const std::string& line) {
    return line.find("Lightning up to 2.5.2") != std::string::npos;
  }));

  const std::string leaves = machine + "versions: {lightning: \"2.2\"}\n" + trainer +
                             "data: {train: {samples: 64, batch_size: 4}}\nprogram:\n"
                             "  training_step:\n    - if: rank == 1 and batch_idx == 1\n"
                             "      then:\n        - return\n";
  const Rehearsal returned = only(leaves);
  REQUIRE_FALSE(returned.findings.empty());
  CHECK(line_of(returned, returned.findings.front()) == line_with(leaves, "- return"));

  const std::string lost = machine + trainer + "data: {train: {samples: 64, batch_size: 4}}\n" +
                           "faults:\n  - lost_rank: {rank: 1, at: step 2}\n";
  const Rehearsal gone = only(lost);
  REQUIRE_FALSE(gone.findings.empty());
  CHECK(line_of(gone, gone.findings.front()) == line_with(lost, "lost_rank"));

  const std::string padded = evaluated(gathered_mean, "samples: 7");
  const Rehearsal warned = only(padded);
  CHECK(line_of(warned, *found(warned, "LS304")) == line_with(padded, "samples: 7"));

  const std::string past = machine + trainer + "data: {train: {samples: 64, batch_size: 4}}\n" +
                           "program:\n  training_step:\n    - forward: {through: module}\n";
  const Rehearsal apart = only(past);
  REQUIRE(found(apart, "LS305") != nullptr);
  CHECK(line_of(apart, *found(apart, "LS305")) == line_with(past, "forward:"));
}

TEST_CASE("a scheduler that follows a local value is one finding, which tells the replicas too") {
  const std::string text =
      machine +
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 3, num_sanity_val_steps: "
      "0}\noptimizer: {SGD: {lr: 0.125}}\n"
      "lr_scheduler: {ReduceLROnPlateau: {factor: 0.5, patience: 0, monitor: val_loss}}\n"
      "data:\n  train: {samples: 16, batch_size: 4}\n  val: {samples: 8, batch_size: 4}\n"
      "program:\n  validation_step: [{log: {name: val_loss, value: \"full(1, 8.0 - (1 - rank) * "
      "epoch)\"}}]\nexpect: [finding LS302, finding LS305]\n";
  const Rehearsal ran = only(text);
  REQUIRE(codes_of(ran) == Codes{"LS302"});
  CHECK(ran.findings.front().level == Level::error);
  CHECK(ran.findings.front().also == std::vector<std::string>{"LS305"});
  CHECK(std::ranges::all_of(ran.expectations, &Judged::met));
  CHECK(ran.findings.front().python ==
        std::vector<std::string>{
            "self.log(\"val_loss\", torch.full(1, 8.0 - (1 - self.global_rank) * "
            "self.current_epoch), sync_dist=True)"});
}

TEST_CASE("a guarded save_checkpoint is named, with what Lightning does by itself") {
  const std::string text =
      machine +
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: "
      "0, limit_val_batches: 0}\ndata: {train: {samples: 16, batch_size: 4}}\n"
      "program:\n  main:\n    - fit\n    - if: is_global_zero\n      then:\n"
      "        - save_checkpoint\n    - barrier\n";
  const Rehearsal ran = only(text);
  REQUIRE(codes_of(ran) == Codes{"LS101"});
  const Finding& finding = ran.findings.front();
  CHECK(line_of(ran, finding) == line_with(text, "- save_checkpoint"));
  CHECK(finding.fix.front().find("Lightning writes the file on rank 0 by itself") !=
        std::string::npos);
  CHECK(finding.python.front() == "trainer.save_checkpoint(path)   # on every rank");
}

TEST_CASE("what has no effect says so") {
  const Rehearsal ran = only(
      machine +
      "launcher: {torchrun: {nnodes: \"1:4\", nproc_per_node: 2, max_restarts: 3}}\n"
      "model: {input: [4], layers: [{Linear: {in_features: 4, out_features: 2, device: 1}}]}\n"
      "metrics: {unused: BinaryF1Score}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, limit_val_batches: 0, "
      "limit_test_batches: 2}\n"
      "data: {train: {samples: 16, batch_size: 4}, test: {samples: 16}}\n"
      "program:\n  on_validation_epoch_end:\n    - if: is_global_zero\n      then:\n"
      "        - all_gather: {elements: 4, as: gathered}\n");
  CHECK(codes_of(ran).empty());
  for (const char* words :
       {"`nnodes: 1:4` is taken as the 1", "`device` of a layer",
        "the hook `on_validation_epoch_end` never runs, as nothing runs validation",
        "`data.test` has no effect", "`limit_test_batches` has no effect",
        "the metric `unused` has no effect"}) {
    INFO(words);
    CHECK(std::ranges::any_of(ran.problems, [words](const Problem& problem) {
      return problem.kind == Problem::Kind::note && problem.place.line > 0 &&
             problem.message.find(words) != std::string::npos;
    }));
  }
}

TEST_CASE("a loss of its own, made of the output, is trained with") {
  // One Linear of 2 inputs and no bias: d mean(output) / d weight is the mean of the inputs.
  const auto text = [](const std::string& rate) {
    return machine +
           "model: {input: [2], layers: [{Linear: {in_features: 2, out_features: 1, bias: "
           "false}}], "
           "loss: MSELoss}\noptimizer: {SGD: {lr: " +
           rate +
           "}}\ntrainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 1, "
           "num_sanity_val_steps: 0, limit_val_batches: 0}\n"
           "data: {train: {samples: 8, batch_size: 4}}\n"
           "program:\n  training_step: [{let: {loss: mean(output)}}]\n";
  };
  const Rehearsal ran = only(text("1.0"));
  const Rehearsal still = only(text("0.0"));
  CHECK(codes_of(ran).empty());
  CHECK(std::ranges::count(ran.coverage.looked_at, "the same samples on one device") == 1);
  const Values inputs = batch_inputs(ran.run.preparation.plan, Batch{{0, 1, 2, 3, 4, 5, 6, 7}}, 0);
  REQUIRE(inputs.size() == 16);
  const Values& before = still.run.preparation.log->ranks.front().final_parameters.front();
  const Values& after = ran.run.preparation.log->ranks.front().final_parameters.front();
  for (int64_t weight = 0; weight < 2; ++weight) {
    double mean = 0;
    for (int64_t sample = 0; sample < 8; ++sample) {
      mean += inputs.number(2 * sample + weight) / 8;
    }
    CHECK(after.number(weight) == Approx(before.number(weight) - mean).margin(1e-6));
  }
}

TEST_CASE("mean of a list of tensors raises, as torch.mean does") {
  const Rehearsal ran = only(bare_text(2, R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(4, 2.0)"}
    - let: {m: "mean([a, b])"}
)yaml"));
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().title.find("mean takes one tensor") != std::string::npos);
  CHECK(only(bare_text(2, "    - assert: mean([1.0, 2.0]) == 1.5\n")).findings.empty());
}

TEST_CASE("a time in years is compared with, however long") {
  const Rehearsal ran = only(bare_text(2, "    - barrier\n", "expect: [total_time < 355 y]\n"));
  REQUIRE(ran.expectations.size() == 1);
  CHECK(ran.expectations.front().met);
}

}  // namespace true_cause_test
