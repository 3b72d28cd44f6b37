// What is reported of logged keys: the fix with the user's own arguments, and who is reported of
// what.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace logged_keys_test {

namespace {

Rehearsal evaluated(const std::string& validation_step, const std::string& more = "") {
  return std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
                "num_sanity_val_steps: 0}\n"
                "data:\n  train: {samples: 16, batch_size: 8}\n"
                "  val: {samples: 8, batch_size: 4, values: {s: [0.9, 0.8, 0.1, 0.7, 0.6, 0.3, "
                "0.2, 0.9], t: [1, 1, 1, 0, 1, 0, 1, 1]}}\n" +
                more + "program:\n  validation_step:\n" + validation_step)
          .front()
          .result);
}

const Finding* found(const Rehearsal& ran, const std::string& code) {
  const auto finding = std::ranges::find(ran.findings, code, &Finding::code);
  return finding == ran.findings.end() ? nullptr : &*finding;
}

}  // namespace

TEST_CASE("the object of a fix has the arguments of the function, and its own data") {
  const Rehearsal ran =
      evaluated("    - log: {name: x, value: \"binary_f1_score(s, t, 0.5)\", sync_dist: true}\n");
  REQUIRE(found(ran, "LS301") != nullptr);
  CHECK(found(ran, "LS301")->fix.front() ==
        "log the object: metrics: {m: {BinaryF1Score: {threshold: 0.5}}}, - update: {metric: m, "
        "preds: s, target: t}, - log: {name: x, value: m}");
}

TEST_CASE("a root of a mean of squares is a root, however it is written") {
  const Rehearsal ran = evaluated(
      "    - log: {name: x, value: \"mean_squared_error(s, t, false)\", sync_dist: true}\n");
  REQUIRE(found(ran, "LS301") != nullptr);
  CHECK(found(ran, "LS301")->fix.front().find("{MeanSquaredError: {squared: false}}") !=
        std::string::npos);
}

TEST_CASE("synchronised keys in a different order are one finding") {
  const Rehearsal ran = evaluated(
      "    - if: rank == 0\n"
      "      then: [{log: {name: a, value: 1.0, sync_dist: true}}, {log: {name: b, value: 2.0, "
      "sync_dist: true}}]\n"
      "      else: [{log: {name: b, value: 2.0, sync_dist: true}}, {log: {name: a, value: 1.0, "
      "sync_dist: true}}]\n");
  CHECK(ran.findings.size() == 1);
  CHECK(found(ran, "LS302") == nullptr);
}

TEST_CASE("one device that stops in another epoch is compared with nothing") {
  const Rehearsal ran = std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                "trainer:\n  accelerator: gpu\n  devices: 2\n  strategy: ddp\n  max_epochs: 6\n"
                "  num_sanity_val_steps: 0\n"
                "  callbacks: [{EarlyStopping: {monitor: x, patience: 1}}]\n"
                "data: {train: {samples: 16, batch_size: 8}, val: {samples: 8, batch_size: 4}}\n"
                "program:\n  validation_step:\n"
                "    - log: {name: x, value: \"1.0 * (world_size > 1) - epoch * (world_size == "
                "1)\"}\n")
          .front()
          .result);
  CHECK_FALSE(ran.results.single_device);
  CHECK(std::ranges::any_of(ran.coverage.not_looked_at, [](const std::string& what) {
    return what.find("different epoch") != std::string::npos;
  }));
}

TEST_CASE("of every key the row of the averaging table is reported") {
  const Rehearsal ran = evaluated(
      "    - update: {metric: mean, preds: s}\n"
      "    - log: {name: mean, value: mean(s), sync_dist: true}\n"
      "    - log: {name: sum, value: sum(s), sync_dist: true, reduce_fx: sum}\n"
      "    - log: {name: max, value: max(s), sync_dist: true, reduce_fx: max}\n"
      "    - log: {name: object, value: mean}\n"
      "    - log: {name: f1, value: \"binary_f1_score(s, t)\", sync_dist: true}\n"
      "    - log: {name: precision, value: \"binary_precision(s, t)\", sync_dist: true}\n",
      "metrics: {mean: MeanMetric}\n");
  std::map<std::string, std::string> told;
  for (const GlobalMetric& metric : ran.logged) {
    told[metric.key] = metric.averaging;
  }
  CHECK(told == std::map<std::string, std::string>{
                    {"mean", "mean weighted by batch size"},
                    {"sum", "the sum of its parts"},
                    {"max", "the max of its parts"},
                    {"object", "a metric object merges states: no values are averaged"},
                    {"f1", "BinaryF1Score is never the mean of its parts"},
                    {"precision",
                     "BinaryPrecision is the mean of its parts only if all predict equally many "
                     "positives"}});
}

TEST_CASE(
    "a value of the samples that is not that of all of them is reported, however it came about") {
  const auto told = [](const std::string& step, const std::string& end = "") {
    const Rehearsal ran =
        evaluated(step + (end.empty() ? "" : "  on_validation_epoch_end:\n" + end),
                  "metrics: {f1: BinaryF1Score}\n");
    const Finding* const finding = found(ran, "LS301");
    CHECK(ran.findings.size() == (finding == nullptr ? 0 : 1));
    return finding == nullptr ? std::string() : finding->why.text;
  };
  const std::string log = "    - log: {name: x, sync_dist: true, value: ";
  const std::string parts =
      "it is not a mean over samples: the values of parts do not average to the value of the whole";
  CHECK(told(log + "\"mean(s) ** 2\"}\n") == parts);
  CHECK(told(log + "\"abs(mean(s) - 0.5)\"}\n") == parts);
  CHECK(told(log + "sum(s)}\n") == "a sum is the sum of its parts, but here they are averaged");
  CHECK(told(log + "min(s)}\n") == "a min is the min of its parts, but here they are averaged");
  CHECK(told("    - let: {f: \"binary_f1_score(s, t)\"}\n"
             "    - all_reduce: {tensor: f, op: avg, as: g}\n    - log: {name: x, value: "
             "mean(g)}\n") == "BinaryF1Score is never the mean of its parts");
  CHECK_FALSE(told("    - let: {m: mean(s)}\n    - all_reduce: {tensor: m, op: sum, as: g}\n"
                   "    - log: {name: x, value: g}\n")
                  .empty());
  // Right as they are.
  CHECK(told(log + "\"2 * mean(s) - mean(t) / 3 + 1\"}\n").empty());
  CHECK(told(log + "\"mean(abs(s - t))\"}\n").empty());
  CHECK(told(log + "\"mean(s * rank)\"}\n").empty());  // nobody knows what is meant
  CHECK(told("    - log: {name: x, sync_dist: true, reduce_fx: sum, value: sum(s)}\n").empty());
  CHECK(
      told("    - update: {metric: f1, preds: s, target: t}\n",
           "    - compute: {metric: f1, as: q}\n    - log: {name: x, value: q}\n    - reset: f1\n")
          .empty());
}

TEST_CASE("a reduction that does not fit the value is named, with the one that does") {
  const auto advised = [](const std::string& value, const std::string& reduction) {
    const Rehearsal ran = evaluated("    - log: {name: x, sync_dist: true, value: " + value +
                                    ", reduce_fx: " + reduction + "}\n");
    const Finding* const finding = found(ran, "LS301");
    return finding == nullptr ? std::string() : finding->fix.front();
  };
  CHECK(advised("sum(s)", "max") == "log it with reduce_fx: sum, sync_dist: true");
  CHECK(advised("max(s)", "sum") == "log it with reduce_fx: max, sync_dist: true");
  CHECK(advised("mean(s)", "max") ==
        "log it in the step with sync_dist: true and the default reduce_fx, mean");
  CHECK(advised("max(s)", "max").empty());
  CHECK(advised("min(s)", "min").empty());
}

TEST_CASE("a MeanMetric of means is reported to be given how many samples they are of") {
  // Five samples on each of two ranks in batches of 4 and 1: means of 1.5 and 4 weigh alike.
  const auto logged = [](const std::string& weight) {
    return std::move(
        rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                  "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                  "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
                  "num_sanity_val_steps: 0}\n"
                  "data: {train: {samples: 16, batch_size: 8}, val: {samples: 10, batch_size: 4, "
                  "values: {s: sample // 2 * 1.0}}}\nmetrics: {m: MeanMetric}\n"
                  "program:\n  validation_step:\n    - update: {metric: m, preds: mean(s)" +
                  weight + "}\n    - log: {name: x, value: m}\n")
            .front()
            .result);
  };
  const Rehearsal bare = logged("");
  REQUIRE(found(bare, "LS302") != nullptr);
  CHECK(found(bare, "LS302")->fix.front() ==
        "weight each mean by its number of samples: `weight: batch_size` beside `preds`");
  CHECK(bare.logged.front().ranks.front().value == Approx(2.75));
  CHECK(bare.logged.front().single_device == Approx(2.0));
  const Rehearsal weighted = logged(", weight: batch_size");
  CHECK(weighted.findings.empty());
  CHECK(weighted.logged.front().ranks.front().value == Approx(2.0));
}

TEST_CASE("gathered samples are no gathered means") {
  const std::string rule =
      "a mean of gathered means weights each alike, however many samples it covers";
  const auto told = [](const std::string& gathered) {
    return evaluated("    - all_gather: {tensor: " + gathered +
                     ", as: all}\n    - log: {name: x, value: mean(all)}\n")
        .logged.front()
        .averaging;
  };
  CHECK(told("mean(s)") == rule);
  CHECK(told("s") == "mean weighted by batch size");
}

namespace {

Rehearsal trained(const std::string& trainer, const std::string& program) {
  return std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
                "num_sanity_val_steps: 0, " +
                trainer + "}\ndata: {train: {samples: 16, batch_size: 4}, val: {samples: 8}}\n" +
                "program:\n" + program)
          .front()
          .result);
}

}  // namespace

TEST_CASE("what a callback decides by is reported where each rank has its own, also of training") {
  const std::string step = "  training_step: [{log: {name: x, value: loss}}]\n";
  const Rehearsal alone = trained("enable_checkpointing: false", step);
  CHECK(alone.findings.empty());
  const Rehearsal monitored =
      trained("callbacks: [{EarlyStopping: {monitor: x, patience: 9}}]", step);
  REQUIRE(monitored.findings.size() == 1);
  CHECK(monitored.findings.front().code == "LS302");
  CHECK(monitored.findings.front().level == Level::warning);
}

TEST_CASE("a monitor of what nothing logs is reported where it minds not") {
  const Rehearsal ran = trained("callbacks: [{EarlyStopping: {monitor: nope, strict: false}}]",
                                "  training_step: [forward]\n");
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().title ==
        "EarlyStopping monitors `nope`, which nothing logs, so it never decides");
}

TEST_CASE(
    "what evaluation logs for steps alone is reported, and is each rank's own without sync_dist") {
  const std::string log = "    - log: {name: x, value: mean(s), on_step: true, on_epoch: false";
  const Rehearsal own = evaluated(log + "}\n");
  REQUIRE(own.logged.size() == 1);
  CHECK(own.logged.front().of_last_batch);
  CHECK(found(own, "LS302") != nullptr);
  const Rehearsal common = evaluated(log + ", sync_dist: true}\n");
  CHECK(common.logged.size() == 1);
  CHECK(common.findings.empty());
}

// 8 samples on 2 ranks in batches of 4 and 3: the last is smaller, so a mean of means is none.
TEST_CASE("what is made of the network's loss is judged where the training is that of one device") {
  const auto judged = [](const std::string& program) {
    return std::move(
        rehearsed("version: 1\ncluster: {preset: cpu, nodes: 1}\n"
                  "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
                  "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
                  "data: {train: {samples: 16, batch_size: 4}, val: {samples: 14, batch_size: 4}}\n"
                  "program:\n" +
                  program)
            .front()
            .result);
  };
  const std::string collected = "  validation_step: [{append: {self.l: loss}}]\n";
  const std::string cleared = "    - let: {self.l: \"[]\"}\n";
  const Rehearsal means =
      judged(collected +
             "  on_validation_epoch_end:\n    - log: {name: x, value: mean(concat(self.l)), "
             "sync_dist: true}\n" +
             cleared);
  REQUIRE(found(means, "LS301") != nullptr);
  CHECK(found(means, "LS301")->why.text ==
        "a mean of means weights each alike, however many samples it covers");
  const Rehearsal weighted =
      judged("  validation_step: [{log: {name: x, value: loss, sync_dist: true}}]\n");
  CHECK(weighted.findings.empty());
  const Rehearsal summed = judged(
      "  validation_step: [{all_reduce: {tensor: loss, as: y}}, {log: {name: x, value: y}}]\n");
  REQUIRE(found(summed, "LS301") != nullptr);
  CHECK(found(summed, "LS301")->why.text ==
        "the values of the ranks are summed, and nothing divides by their number");
  const Rehearsal guarded =
      judged("  validation_step: [{if: is_global_zero, then: [{log: {name: x, value: loss}}]}]\n");
  REQUIRE(found(guarded, "LS302") != nullptr);
  CHECK(found(guarded, "LS302")->fix.front() ==
        "take it out of the guard, and add sync_dist: true");
  const Rehearsal scaled =
      judged("  validation_step: [{log: {name: x, value: loss * world_size, sync_dist: true}}]\n");
  REQUIRE(found(scaled, "LS301") != nullptr);
}

}  // namespace logged_keys_test
