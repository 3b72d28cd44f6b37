#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace training_test {

namespace {

Ran train(const std::string& text) { return run_text(text, standard_strategies()); }

std::string ddp(const std::string& more) { return "version: 1\nmodel: {preset: mlp}\n" + more; }

// Places of the operations of a rank that communicate, in order, runs of DDP's own left out.
std::vector<std::string> calls(const Ran& ran, int32_t rank) {
  std::vector<std::string> names;
  ran.result.journal->lane(rank, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && is_communication(row.kind)) {
      const std::string place = ran.preparation.sites.place(row.site);
      if (place.substr(0, 4) != "ddp:") {
        names.push_back(place);
      } else if (names.empty() || names.back() != "ddp") {
        names.push_back("ddp");
      }
    }
  });
  return names;
}

}  // namespace

TEST_CASE("the collectives of fit come in Lightning's order") {
  const Ran ran = train(ddp(R"yaml(
trainer:
  strategy: ddp
  devices: 2
  max_epochs: 1
  limit_train_batches: 1
  num_sanity_val_steps: 1
  limit_val_batches: 1
data: {train: {samples: 32}, val: {samples: 16}}
)yaml"));
  CHECK_FALSE(ran.result.hung);
  CHECK(ran.result.ends[0].message == "");
  // A reduce is a barrier and an all_reduce.
  const std::string length = "Lightning, reduce of a loader's length";
  const std::string log_dir = "Lightning, broadcast of the log directory";
  const std::string folder = "Lightning, ModelCheckpoint, broadcast of its folder";
  const std::string exists = "Lightning, ModelCheckpoint, whether the file exists";
  const std::vector<std::string> expected = {log_dir,
                                             log_dir,
                                             "Lightning, barrier before setup",
                                             folder,
                                             folder,
                                             "Lightning, barrier after setup",
                                             "ddp",
                                             "Lightning, barrier after restoring state",
                                             "Lightning, barrier before the stage",
                                             "Lightning, val_dataloader() barrier",
                                             length,
                                             length,
                                             "Lightning, train_dataloader() barrier",
                                             length,
                                             length,
                                             length,
                                             length,
                                             "Lightning, broadcast of the SIGTERM flag",
                                             "ddp",
                                             exists,
                                             exists,
                                             "Lightning, ModelCheckpoint, barrier after saving"};
  CHECK(calls(ran, 0) == expected);
  CHECK(calls(ran, 1) == expected);
  CHECK(ran.log(0).steps == 1);
}

TEST_CASE("before Lightning 2.5.3 no flag is broadcast before a batch") {
  const Ran ran = train(ddp(R"yaml(
versions: {lightning: "2.5.2"}
trainer: {strategy: ddp, devices: 2, max_epochs: 1}
data: {train: {samples: 32}}
)yaml"));
  const std::vector<std::string> names = calls(ran, 0);
  CHECK(std::count(names.begin(), names.end(), "Lightning, broadcast of the SIGTERM flag") == 0);
  CHECK(ran.log(0).steps == 2);
}

TEST_CASE("an epoch mean of a sum that ranks do not divide is inflated from Lightning 2.0 on") {
  // 19 samples of value 1 in 2 ranks: sum(C) / W = 9.5 is floored to 9 (issue 21838).
  const std::string text = R"yaml(
trainer: {strategy: ddp, devices: 2, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 2}
  val: {batches: 1}
program:
  validation_step:
    - log: {name: one, value: 1.0, sync_dist: true, batch_size: 9 + is_global_zero}
)yaml";
  const Ran now = train(ddp(text));
  CHECK(now.log(0).metrics.at("one") == Approx(9.5 / 9).epsilon(1e-6));
  CHECK(now.log(1).metrics.at("one") == Approx(9.5 / 9).epsilon(1e-6));
  const Ran before = train(ddp("versions: {lightning: \"1.9\"}\n" + text));
  CHECK(before.log(0).metrics.at("one") == Approx(1.0).epsilon(1e-6));
}

TEST_CASE("44 samples on 16 ranks are logged 1.375 times too large") {
  const Ran ran = train(ddp(R"yaml(
trainer: {strategy: ddp, devices: 16, max_epochs: 1, num_sanity_val_steps: 0}
cluster: {preset: dgx-h100, gpus: 16}
data:
  train: {samples: 16}
  val: {batches: 1}
program:
  validation_step:
    - log: {name: one, value: 1.0, sync_dist: true, batch_size: 2 + (rank < 12)}
)yaml"));
  CHECK(ran.log(7).metrics.at("one") == Approx(1.375).epsilon(1e-6));
}

TEST_CASE("without sync_dist every rank keeps its own mean") {
  const Ran ran = train(ddp(R"yaml(
trainer: {strategy: ddp, devices: 2, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 2}
  val: {samples: 32, batch_size: 8}
program:
  validation_step:
    - log: {name: mine, value: rank + batch_idx}
)yaml"));
  CHECK(ran.log(0).metrics.at("mine") == Approx(0.5));
  CHECK(ran.log(1).metrics.at("mine") == Approx(1.5));
}

TEST_CASE("a step value with sync_dist is one reduction per call, and has the key of the step") {
  const Ran ran = train(ddp(R"yaml(
trainer: {strategy: ddp, devices: 2, max_epochs: 1}
data: {train: {samples: 32, batch_size: 8}}
program:
  training_step:
    - log: {name: r, value: 2.0 * rank, sync_dist: true, on_epoch: true, at: "model.py:7"}
)yaml"));
  CHECK(ran.log(0).metrics.at("r_step") == Approx(1));
  CHECK(ran.log(0).metrics.at("r_epoch") == Approx(1));
  // 2 batches: 2 reductions of the step, and value and batch size at the end; each with a barrier.
  int64_t calls_of_log = 0;
  ran.result.journal->lane(0, 0).for_each([&](const Row& row) {
    const Site* site = ran.preparation.sites.find(row.site);
    calls_of_log += row.row == RowKind::op && is_communication(row.kind) && site != nullptr &&
                    site->description == "log";
  });
  CHECK(calls_of_log == 8);
}

TEST_CASE("an all_gather guarded by is_global_zero hangs in the sanity check") {
  const std::string text = R"yaml(
trainer: {strategy: ddp, devices: 4, max_epochs: 1}
data: {train: {samples: 32}, val: {samples: 32}}
program:
  validation_step:
    - append: {self.val_outputs: loss}
  on_validation_epoch_end:
    - if: GUARD
      then:
        - all_gather: {tensor: concat(self.val_outputs), as: gathered}
        - log: {name: m, value: mean(gathered), rank_zero_only: true}
    - let: {self.val_outputs: "[]"}
)yaml";
  std::string guarded = text;
  guarded.replace(guarded.find("GUARD"), 5, "is_global_zero");
  const Ran hangs = train(ddp(guarded));
  CHECK(hangs.result.hung);
  std::string open = text;
  open.replace(open.find("GUARD"), 5, "true");
  const Ran fine = train(ddp(open));
  CHECK_FALSE(fine.result.hung);
  CHECK(fine.log(0).metrics.count("m") == 1);
}

TEST_CASE("uneven batches hang without join and end with it") {
  const std::string text = R"yaml(
versions: {lightning: "2.4"}
data: {train: {batches: 3 + (rank == 0), batch_size: 4}}
)yaml";
  CHECK(train(ddp(text + "trainer: {strategy: ddp, devices: 2, max_epochs: 1}\n")).result.hung);
  const Ran joined = train(
      ddp(text + "trainer: {strategy: {DDPStrategy: {join: true}}, devices: 2, max_epochs: 1}\n"));
  CHECK_FALSE(joined.result.hung);
  CHECK(joined.log(0).steps == 4);
  CHECK(joined.log(1).steps == 3);
}

TEST_CASE("accumulation exchanges gradients once a window and steps at the end of the epoch") {
  const Ran ran = train(ddp(R"yaml(
trainer: {strategy: ddp, devices: 2, max_epochs: 1, accumulate_grad_batches: 4}
data: {train: {samples: 96, batch_size: 8}}
)yaml"));
  CHECK(ran.log(0).steps == 2);  // 6 batches: after the 4th and the last
  int64_t buckets = 0;
  ran.result.journal->lane(0, 0).for_each([&](const Row& row) {
    buckets += row.row == RowKind::op && row.site == site_id("ddp: all_reduce of a bucket");
  });
  CHECK(buckets == 2);  // the perceptron fits in one bucket
}

TEST_CASE("return in training_step skips the backward of a batch, whose step still counts") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 1, max_epochs: 1}
data: {train: {samples: 32, batch_size: 8}}
program:
  training_step:
    - if: batch_idx == 1
      then: [return]
)yaml"));
  CHECK(ran.log(0).steps == 4);
}

TEST_CASE("manual optimization steps where the user says") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 2, strategy: ddp, max_epochs: 1}
data: {train: {samples: 32, batch_size: 8}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - zero_grad
    - backward
    - optimizer_step
)yaml"));
  CHECK(ran.result.ends[0].message == "");
  CHECK(ran.log(0).steps == 2);
}

TEST_CASE("should_stop on one rank makes the others wait, after a common decision it does not") {
  const std::string head = R"yaml(
trainer: {devices: 2, strategy: ddp, max_epochs: 2}
data: {train: {samples: 32, batch_size: 8}}
program:
  on_train_epoch_end:
)yaml";
  CHECK(train(ddp(head + "    - should_stop: is_global_zero\n")).result.hung);
  const Ran agreed = train(ddp(head + R"yaml(
    - reduce_boolean_decision: {value: is_global_zero, all: false, as: stop}
    - should_stop: stop
)yaml"));
  CHECK_FALSE(agreed.result.hung);
  CHECK(agreed.log(1).epochs == 1);
}

TEST_CASE("replicas end with equal parameters, and every sample is used once") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 2, strategy: ddp, max_epochs: 1}
data: {train: {samples: 32, batch_size: 8}}
)yaml"));
  REQUIRE(!ran.log(0).final_parameters.empty());
  CHECK(ran.log(0).final_parameters == ran.log(1).final_parameters);
  std::vector<int64_t> used = ran.log(0).samples.at(0).samples.list();
  const std::vector<int64_t> others = ran.log(1).samples.at(0).samples.list();
  used.insert(used.end(), others.begin(), others.end());
  std::sort(used.begin(), used.end());
  REQUIRE(used.size() == 32);
  for (size_t i = 0; i < used.size(); ++i) {
    CHECK(used[i] == static_cast<int64_t>(i));
  }
}

TEST_CASE("what is not modelled is named with its place") {
  const Preparation preparation = prepare(scenario_of(ddp(R"yaml(
trainer:
  devices: 2
  strategy: {PipelineStrategy: {schedule: SpecTrain}}
  callbacks: [StochasticWeightAveraging]
  precision: 16-mixed
metrics: {text: BERTScore}
lr_scheduler: SWALR
)yaml")),
                                          standard_strategies());
  CHECK_FALSE(preparation.runnable());
  int64_t unsupported = 0;
  for (const Problem& problem : preparation.problems) {
    unsupported += problem.kind == Problem::Kind::unsupported;
    CHECK((problem.kind == Problem::Kind::note || problem.place.line > 0));
  }
  CHECK(unsupported == 4);
}

TEST_CASE("more GPUs than a node has are refused") {
  const Preparation preparation = prepare(
      scenario_of(ddp("cluster: {preset: dgx-a100}\ntrainer: {devices: 9, strategy: ddp}\n")),
      standard_strategies());
  CHECK_FALSE(preparation.runnable());
  CHECK(preparation.problems.front().code == "LS501");
}

TEST_CASE("on_exception runs on the rank that raised, and its collective meets the others' calls") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 2, strategy: ddp, max_epochs: 1}
data: {train: {samples: 32, batch_size: 8}}
program:
  training_step:
    - if: rank == 1 and batch_idx == 1
      then: [{raise: bad sample}]
  on_exception:
    - barrier
)yaml"));
  CHECK(ran.result.hung);
  REQUIRE(ran.result.waiting.size() == 2);
}

TEST_CASE("what a step stores on the module is lost under dp with several devices") {
  const std::string text = R"yaml(
data: {train: {samples: 32, batch_size: 8}}
program:
  on_train_start:
    - let: {self.seen: 0}
  training_step:
    - let: {self.seen: self.seen + 1}
  on_train_epoch_end:
    - log: {name: seen, value: self.seen}
)yaml";
  const Ran lost =
      train(ddp(text + "trainer: {accelerator: gpu, strategy: dp, devices: 2, max_epochs: 1}\n"));
  CHECK(lost.log(0).metrics.at("seen") == 0);
  REQUIRE(lost.log(0).findings.size() == 1);
  CHECK(lost.log(0).findings[0].code == "LS308");
  const Ran kept = train(ddp(text + "trainer: {strategy: ddp, devices: 2, max_epochs: 1}\n"));
  CHECK(kept.log(0).metrics.at("seen") == 2);
  CHECK(kept.log(0).findings.empty());
}

TEST_CASE("fit after validate calls fit's barriers, not those of validate") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {samples: 16}}
program:
  main: [validate, fit]
)yaml"));
  CHECK_FALSE(ran.result.hung);
  const std::vector<std::string> names = calls(ran, 0);
  CHECK(std::count(names.begin(), names.end(), "Lightning, barrier before the stage") == 1);
  CHECK(std::count(names.begin(), names.end(), "Lightning, barrier after restoring state") == 1);
}

TEST_CASE("should_stop is heard once min_epochs have been run in full") {
  const auto epochs = [](const std::string& minimum) {
    const Ran ran = train(ddp("trainer: {devices: 1, max_epochs: 5" + minimum + R"yaml(}
data: {train: {samples: 32, batch_size: 8}}
program:
  on_train_batch_end:
    - should_stop: true
)yaml"));
    return std::pair(ran.log(0).epochs, ran.log(0).steps);
  };
  CHECK(epochs("") == std::pair<int64_t, int64_t>(1, 1));
  CHECK(epochs(", min_epochs: 1") == std::pair<int64_t, int64_t>(1, 4));
  CHECK(epochs(", min_epochs: 2") == std::pair<int64_t, int64_t>(2, 8));
  CHECK(epochs(", min_steps: 6") == std::pair<int64_t, int64_t>(2, 6));
}

TEST_CASE("should_stop before the first batch of an epoch leaves that epoch without batches") {
  const Ran ran = train(ddp(R"yaml(
trainer: {devices: 1, max_epochs: 5}
data: {train: {samples: 32, batch_size: 8}}
program:
  on_train_epoch_start:
    - should_stop: epoch == 1
)yaml"));
  CHECK(ran.log(0).steps == 4);
  CHECK(ran.log(0).epochs == 2);
}

TEST_CASE("a longer training holds no more memory") {
  const auto peak = [](int steps) {
    const Ran ran = train(ddp("trainer: {strategy: ddp, devices: 2, max_epochs: 1, max_steps: " +
                              std::to_string(steps) + "}\ndata: {train: {samples: 4096}}\n"));
    CHECK(ran.log(0).steps == steps);
    return ran.result.memory[0].at(DeviceId{0}).peak;
  };
  CHECK(peak(60) == peak(6));
}

}  // namespace training_test
