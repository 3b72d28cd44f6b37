// Metric objects in a training run: what is logged, and which collectives that takes.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace metric_statements_test {

namespace {

// Rank 0 gets the even samples: batches (1 of 2 found) and (2 of 2); rank 1 one false alarm.
std::string validated(const std::string& more) {
  return R"yaml(
version: 1
model: {input: [2], layers: [{Linear: [2, 2]}]}
data:
  train: {samples: 2}
  val:
    samples: 8
    batch_size: 2
    values:
      score: [0.9, 0.9, 0.1, 0.8, 0.8, 0.7, 0.7, 0.6]
      target: [1, 1, 1, 1, 1, 1, 1, 0]
)yaml" + more;
}

std::string ddp() {
  return "trainer: {strategy: ddp, devices: 2, max_epochs: 1, num_sanity_val_steps: 0}\n";
}

Ran run(const std::string& more) {
  return run_text(validated(ddp() + more), standard_strategies());
}

// All gathers that metrics call.
int64_t gathers(const Ran& ran) {
  int64_t found = 0;
  ran.result.journal->lane(0, 0).for_each([&](const Row& row) {
    const Site* site = ran.preparation.sites.find(row.site);
    found += row.row == RowKind::op && row.kind == OpKind::all_gather && site != nullptr &&
                     site->part.find("state `") != std::string::npos
                 ? 1
                 : 0;
  });
  return found;
}

}  // namespace

TEST_CASE("a logged metric object is computed over all ranks at the end of the epoch") {
  const Ran ran = run(R"yaml(
metrics: {f1: BinaryF1Score}
program: {validation_step: [{update: f1}, {log: {name: val_f1, value: f1}}]}
)yaml");
  // 7 positives, 6 of them found, and a false alarm: 12 / (12 + 1 + 1).
  CHECK(ran.log(0).metrics.at("val_f1") == Approx(12.0 / 14));
  CHECK(ran.log(1).metrics.at("val_f1") == Approx(12.0 / 14));
  CHECK(gathers(ran) == 8);  // of shape and data, for each of four states
}

TEST_CASE("validation keeps what forward gave for the batch from callback_metrics") {
  const Ran ran = run(R"yaml(
metrics: {recall: BinaryRecall}
program:
  validation_step:
    - update: {metric: recall, as: of_batch}
    - assert: of_batch == 1 or rank == 0
    - log: {name: recall, value: recall, on_step: true}
)yaml");
  CHECK(ran.log(0).findings.empty());
  CHECK(ran.log(0).metrics.count("recall_step") == 0);
  CHECK(ran.log(0).metrics.at("recall_epoch") == Approx(6.0 / 7));
  CHECK(gathers(ran) == 8);
}

TEST_CASE("dist_sync_on_step gathers the batch's state in every forward") {
  const Ran ran = run(R"yaml(
metrics: {recall: {BinaryRecall: {dist_sync_on_step: true}}}
program:
  validation_step: [{update: {metric: recall, as: of_batch}}]
  on_validation_epoch_end: [{assert: true}]
)yaml");
  CHECK(gathers(ran) == 2 * 8);  // two batches
}

TEST_CASE("a metric that does not synchronise on compute stays the rank's own") {
  const Ran ran = run(R"yaml(
metrics: {recall: {BinaryRecall: {sync_on_compute: false}}}
program: {validation_step: [{update: recall}, {log: {name: recall, value: recall}}]}
)yaml");
  CHECK(ran.log(0).metrics.at("recall") == Approx(0.75));
  CHECK(ran.log(1).metrics.at("recall") == Approx(1.0));
  CHECK(gathers(ran) == 0);
}

TEST_CASE("members of a collection are logged under their keys") {
  const Ran ran = run(R"yaml(
metrics: {all: {MetricCollection: {metrics: [BinaryRecall, BinaryPrecision], prefix: val_}}}
program: {validation_step: [{update: all}, {log_dict: {dictionary: all}}]}
)yaml");
  CHECK(ran.log(1).metrics.at("val_BinaryRecall") == Approx(6.0 / 7));
  CHECK(ran.log(1).metrics.at("val_BinaryPrecision") == Approx(6.0 / 7));
}

TEST_CASE("a collection may be given its members one by one, with their own arguments") {
  for (const char* members : {"[{BinaryFBetaScore: {beta: 1.0}}, BinaryRecall]",
                              "[[{BinaryFBetaScore: {beta: 1.0}}, BinaryRecall]]"}) {
    const Ran ran = run("\nmetrics: {all: {MetricCollection: " + std::string(members) +
                        "}}\nprogram: {validation_step: [{update: all}, {log_dict: {dictionary: "
                        "all}}]}\n");
    CHECK(ran.log(1).metrics.at("BinaryRecall") == Approx(6.0 / 7));
    CHECK(ran.log(1).metrics.at("BinaryFBetaScore") == Approx(6.0 / 7));
  }
}

TEST_CASE("NCCL cannot gather lists that compute_on_cpu has moved to the host") {
  const std::string text = R"yaml(
metrics: {area: {BinaryAUROC: {compute_on_cpu: true}}}
program: {validation_step: [{update: area}, {log: {name: area, value: area}}]}
)yaml";
  const Ran ran = run(text);
  CHECK(ran.result.ends[0].message.starts_with("No backend type associated with device type cpu"));
  REQUIRE(ran.log(0).findings.size() == 1);
  CHECK(ran.log(0).findings.front().code == "LS310");
  const Ran over_gloo = run(text + "process_group: {backend: gloo}\n");
  CHECK(over_gloo.result.ends[0].message == "");
}

TEST_CASE("labels that a metric does not know end the rank with a finding at the statement") {
  const Ran ran = run(R"yaml(
metrics: {accuracy: {MulticlassAccuracy: {num_classes: 2}}}
program: {validation_step: [{update: {metric: accuracy, preds: target + 1}}]}
)yaml");
  REQUIRE(ran.log(0).findings.size() == 1);
  CHECK(ran.log(0).findings.front().code == "evaluation");
  CHECK(ran.log(0).findings.front().message ==
        "the metric `accuracy` (MulticlassAccuracy): `preds` holds the class 2, and there are 2 "
        "classes, from 0");
}

TEST_CASE("one device exchanges nothing") {
  const Ran ran = run_text(validated(R"yaml(
trainer: {devices: 1, max_epochs: 1, num_sanity_val_steps: 0}
metrics: {f1: BinaryF1Score}
program: {validation_step: [{update: f1}, {log: {name: val_f1, value: f1}}]}
)yaml"),
                           standard_strategies());
  CHECK(ran.log(0).metrics.at("val_f1") == Approx(12.0 / 14));
  CHECK(gathers(ran) == 0);
}

TEST_CASE("arguments of metrics that are wrong, and metrics that are not modelled, are reported") {
  const Preparation preparation = prepare(scenario_of(validated(ddp() + R"yaml(
metrics:
  no_classes: MulticlassF1Score
  average: {MulticlassF1Score: {num_classes: 3, average: median}}
  threshold: {BinaryF1Score: {threshold: 2.0}}
  nested: {MetricCollection: {metrics: [BinaryF1Score, {BinaryRecall: {treshold: 0.5}}]}}
  text: BERTScore
)yaml")),
                                          standard_strategies());
  std::vector<std::string> messages;
  for (const Problem& problem : preparation.problems) {
    messages.push_back(problem.message);
    CHECK(problem.place.line > 0);
  }
  CHECK(messages ==
        std::vector<std::string>{"MulticlassF1Score: `num_classes` is missing",
                                 "MulticlassF1Score: `median` is no average",
                                 "BinaryF1Score: `threshold` is 2",
                                 "BinaryRecall: there is no argument `treshold`",
                                 "`BERTScore` of torchmetrics.text: scores of text are not "
                                 "modelled"});
}

TEST_CASE("a curve that is logged raises as in Lightning") {
  const Ran ran = run(R"yaml(
metrics: {roc: BinaryROC}
program: {validation_step: [{update: roc}, {log: {name: val_roc, value: roc}}]}
)yaml");
  REQUIRE(ran.log(0).findings.size() == 1);
  CHECK(ran.log(0).findings.front().message ==
        "The `.compute()` return of the metric logged as 'val_roc' must be a tensor. Found list");
}

TEST_CASE("a curve that is computed can be taken apart") {
  const Ran ran = run(R"yaml(
metrics: {roc: BinaryROC}
program:
  validation_step: [{update: roc}]
  on_validation_epoch_end:
    - compute: {metric: roc, as: curve}
    - log: {name: most, value: "max(curve[1])"}
    - log: {name: points, value: "len(curve[2])"}
    - reset: roc
)yaml");
  // Scores 0.9, 0.8, 0.7, 0.6, 0.1, and the point (0, 0).
  CHECK(ran.log(0).metrics.at("most") == Approx(1));
  CHECK(ran.log(0).metrics.at("points") == Approx(6));
}

}  // namespace metric_statements_test
