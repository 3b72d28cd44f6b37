// What Lightning and PyTorch refuse once the training runs, and what versions call.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace refused_settings_test {

namespace {

std::string text(const std::string& trainer, const std::string& more,
                 const std::string& loader = "samples: 40, batch_size: 2") {
  return "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
         "trainer: {accelerator: cpu, devices: 2, strategy: ddp, enable_checkpointing: false, "
         "num_sanity_val_steps: 0, " +
         trainer + "}\ndata: {train: {" + loader + "}, val: {samples: 8, batch_size: 2}}\n" + more;
}

Ran train(const std::string& scenario) { return run_text(scenario, standard_strategies()); }

const std::string counted =
    "program: {on_validation_start: [{append: {self.runs: batch_idx}}], "
    "on_train_end: [{assert: len(self.runs) == ";

std::string end_of(const Ran& ran) { return ran.result.ends[0].message; }

Preparation prepared(const std::string& scenario) {
  return prepare(scenario_of(scenario), standard_strategies());
}

bool has_problem(const Preparation& preparation, Problem::Kind kind, const std::string& words) {
  for (const Problem& problem : preparation.problems) {
    if (problem.kind == kind && problem.message.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a second backward of one forward raises, wherever it stands") {
  const std::string again = "Trying to backward through the graph a second time";
  const std::string manual = "program:\n  automatic_optimization: false\n  training_step: ";
  CHECK(end_of(train(text("max_epochs: 1", manual + "[forward, {backward: loss}, "
                                                    "{backward: loss}, optimizer_step]\n"))) ==
        again);
  CHECK(end_of(train(text("max_epochs: 1", manual + "[forward, {no_sync: [{backward: loss}]}, "
                                                    "{backward: loss}, optimizer_step]\n"))) ==
        again);
  CHECK(end_of(train(text("max_epochs: 1", manual + "[forward, {backward: loss}, forward, "
                                                    "{backward: loss}, optimizer_step]\n"))) == "");
}

TEST_CASE("with check_val_every_n_epoch null batches are counted over epochs") {
  // 10 batches per epoch, 40 in all: after 15 and 30.
  const Ran ran = train(text("max_epochs: 4, val_check_interval: 15, check_val_every_n_epoch: null",
                             counted + "2}]}\n"));
  CHECK(end_of(ran) == "");
  CHECK(ran.log(0).findings.empty());
}

TEST_CASE("an interval of validation that never comes is refused") {
  CHECK(end_of(train(text("max_epochs: 2, val_check_interval: 15", ""))) ==
        "`val_check_interval` (15) must be less than or equal to the number of the training "
        "batches (10)");
  CHECK(end_of(train(text("max_epochs: 1, val_check_interval: 10", ""))) == "");
  CHECK(end_of(train(text("max_epochs: 1, val_check_interval: 15, limit_val_batches: 0", ""))) ==
        "");
  CHECK(end_of(train(text("max_epochs: 1, val_check_interval: 0.5", "",
                          "samples: 40, batch_size: 2, iterable: true"))) ==
        "with an IterableDataset `val_check_interval` must be 1.0 or an int");
}

TEST_CASE("a part of the batches that is none of them is refused") {
  CHECK(end_of(train(text("max_epochs: 1, limit_val_batches: 0.1", ""))) ==
        "You requested to check 0.1 of the `val_dataloader` but 0.1 * 2 < 1; try at least "
        "`limit_val_batches=0.5`");
}

TEST_CASE("hooks of 1.x choose 1.9, and in 2.x are refused or never called") {
  const std::string ends = "program: {validation_epoch_end: [{log: {name: x, value: 1.0}}]}\n";
  CHECK(prepared(text("max_epochs: 1", ends)).lightning == Version{1, 9, 0});
  const std::string later = "versions: {lightning: \"2.6\"}\n";
  CHECK(has_problem(prepared(text("max_epochs: 1", later + ends)), Problem::Kind::refused,
                    "has been removed"));
  const std::string step_end = "program: {training_step_end: [{log: {name: x, value: 1.0}}]}\n";
  CHECK(has_problem(prepared(text("max_epochs: 1", later + step_end)), Problem::Kind::warning,
                    "never calls"));
  CHECK(train(text("max_epochs: 1", later + step_end)).log(0).metrics.count("x") == 0);
  CHECK(train(text("max_epochs: 1", step_end)).log(0).metrics.count("x") == 1);
}

TEST_CASE("hooks log what Lightning lets them log") {
  const auto logs_in = [](const std::string& hook, const std::string& more = "") {
    return end_of(train(text(
        "max_epochs: 1", "program: {" + hook + ": [{log: {name: x, value: 1.0" + more + "}}]}\n")));
  };
  CHECK(logs_in("on_train_end") == "You can't `self.log()` inside `on_train_end`");
  CHECK(logs_in("on_validation_end") == "You can't `self.log()` inside `on_validation_end`");
  CHECK(logs_in("on_train_epoch_end", ", on_step: true") ==
        "You can't `self.log(on_step=True)` inside `on_train_epoch_end`");
  CHECK(logs_in("on_validation_epoch_end", ", on_epoch: false") ==
        "You can't `self.log(on_epoch=False)` inside `on_validation_epoch_end`");
  CHECK(logs_in("training_step", ", on_step: false") ==
        "`self.log(on_step=False, on_epoch=False)` is not useful");
  CHECK(logs_in("on_train_epoch_end") == "");
  CHECK(logs_in("validation_step", ", on_step: true") == "");
  CHECK(logs_in("training_step", ", batch_size: 0").starts_with("`batch_size` of log is 0"));
}

TEST_CASE("a key is logged in one way by a hook, and names no loader itself") {
  const std::string twice =
      "program: {validation_step: [{log: {name: x, value: 1.0}}, "
      "{log: {name: x, value: 1.0, sync_dist: true}}]}\n";
  CHECK(end_of(train(text("max_epochs: 1", twice))) ==
        "You called `self.log(x, ...)` twice in `validation_step` with different arguments. This "
        "is not allowed");
  const std::string named =
      "program: {validation_step: [{log: {name: x/dataloader_idx_0, "
      "value: 1.0}}]}\n";
  CHECK(end_of(train(text("max_epochs: 1", named))).find("should not contain") !=
        std::string::npos);
}

TEST_CASE("reductions of log are four, and avg is the mean") {
  const auto with = [](const std::string& reduction) {
    return text("max_epochs: 1",
                "program: {validation_step: [{log: {name: x, value: batch_idx * "
                "1.0, sync_dist: true, reduce_fx: " +
                    reduction + "}}]}\n");
  };
  CHECK(has_problem(prepared(with("median")), Problem::Kind::refused, "not by `median`"));
  CHECK(train(with("avg")).log(0).metrics.at("x") == train(with("mean")).log(0).metrics.at("x"));
}

TEST_CASE("an unrepeated sampler wants a sample for every rank, and clipping a known algorithm") {
  const Ran ran =
      train(text("max_epochs: 1", "", "samples: 40, batch_size: 2, sampler: unrepeated"));
  CHECK(end_of(ran) == "");
  const Ran few =
      train(text("max_epochs: 1", "", "samples: 1, batch_size: 2, sampler: unrepeated"));
  CHECK(few.result.ends[1].message == "UnrepeatedDistributedSampler needs a sample for every rank");
  CHECK(has_problem(prepared(text("max_epochs: 1, gradient_clip_algorithm: foo", "")),
                    Problem::Kind::refused, "foo is invalid"));
}

TEST_CASE("batches pass the hooks of their transfer before their own, and under dp have none") {
  const std::string order =
      "program:\n  on_fit_start: [{let: {self.seen: \"[]\"}}]\n"
      "  on_before_batch_transfer: [{append: {self.seen: 1}}]\n"
      "  transfer_batch_to_device: [{append: {self.seen: 2}}]\n"
      "  on_after_batch_transfer: [{append: {self.seen: 3}}]\n"
      "  on_train_batch_start: [{append: {self.seen: 4}}]\n"
      "  on_train_end: [{assert: \"self.seen == [1, 2, 3, 4, 1, 2, 3]\"}]\n";
  const Ran ran = train(text("max_epochs: 1, limit_train_batches: 1, limit_val_batches: 1", order));
  CHECK(end_of(ran) == "");
  CHECK(ran.log(0).findings.empty());
  const std::string dp =
      "version: 1\nversions: {lightning: \"1.6\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: dp, max_epochs: 1}\n"
      "program: {transfer_batch_to_device: [{host: 1 ms}]}\n";
  CHECK(has_problem(prepared(dp), Problem::Kind::refused, "not supported in DP mode"));
}

TEST_CASE("validate and test need a step or data of their own, predict does not") {
  const auto script = [](const std::string& main) {
    return "version: 1\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
           "program: {main: [" +
           main + "]}\n";
  };
  CHECK(has_problem(prepared(script("validate")), Problem::Kind::refused,
                    "No `validation_step()` method defined to run `Trainer.validate`"));
  CHECK(has_problem(prepared(script("fit, test")), Problem::Kind::refused,
                    "No `test_step()` method defined to run `Trainer.test`"));
  const Ran predicted = train(script("predict"));
  CHECK(end_of(predicted) == "");
  CHECK(predicted.log(0).samples.size() == 1);
  CHECK(predicted.log(0).samples.front().stage == "predict");
}

TEST_CASE("hooks that some versions alone call are refused, or told of, by the others") {
  const auto with = [](const std::string& hook, const std::string& version) {
    return prepared("version: 1\nversions: {lightning: \"" + version + "\"}\n" +
                    "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}\n" +
                    "program: {" + hook + ": [{host: 1 ms}]}\n");
  };
  for (const char* hook : {"on_epoch_start", "on_epoch_end", "on_batch_start", "on_batch_end"}) {
    CHECK(!has_problem(with(hook, "1.6"), Problem::Kind::warning, hook));
    CHECK(!has_problem(with(hook, "1.7"), Problem::Kind::refused, hook));
    CHECK(has_problem(with(hook, "1.9"), Problem::Kind::refused, "removed in Lightning 1.8"));
    CHECK(has_problem(with(hook, "2.1"), Problem::Kind::warning, "Lightning 2.1 never calls"));
  }
  CHECK(has_problem(with("configure_model", "2.0"), Problem::Kind::warning,
                    "Lightning 2.0 never calls `configure_model`"));
  CHECK(!has_problem(with("configure_model", "2.1"), Problem::Kind::warning, "configure_model"));
  CHECK(has_problem(with("configure_model: [{host: 1 ms}], configure_sharded_model", "2.6"),
                    Problem::Kind::refused, "are overridden"));
  CHECK(prepared("version: 1\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp}\n"
                 "program: {on_batch_end: [{host: 1 ms}]}\n")
            .lightning == Version{1, 7, 0});
}

TEST_CASE("the hooks of any epoch and of any batch run in 1.6 where Lightning calls them") {
  const Ran ran = train(
      "version: 1\nversions: {lightning: \"1.6\"}\n"
      "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1, "
      "num_sanity_val_steps: 0, limit_train_batches: 1, limit_val_batches: 1}\n"
      "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
      "data: {train: {samples: 8, batch_size: 2}, val: {samples: 8, batch_size: 2}}\n"
      "program:\n"
      "  on_fit_start: [{let: {self.seen: \"[]\"}}]\n"
      "  on_pretrain_routine_start: [{append: {self.seen: 11}}]\n"
      "  on_pretrain_routine_end: [{append: {self.seen: 12}}]\n"
      "  on_epoch_start: [{append: {self.seen: 1}}]\n"
      "  on_train_epoch_start: [{append: {self.seen: 2}}]\n"
      "  on_batch_start: [{append: {self.seen: 3}}]\n"
      "  on_train_batch_start: [{append: {self.seen: 4}}]\n"
      "  on_train_batch_end: [{append: {self.seen: 5}}]\n"
      "  on_batch_end: [{append: {self.seen: 6}}]\n"
      "  on_validation_epoch_start: [{append: {self.seen: 7}}]\n"
      "  on_validation_epoch_end: [{append: {self.seen: 8}}]\n"
      "  on_train_epoch_end: [{append: {self.seen: 9}}]\n"
      "  on_epoch_end: [{append: {self.seen: 10}}]\n"
      "  on_train_end: [{assert: \"self.seen == [11, 12, 1, 2, 3, 4, 5, 6, 1, 7, 8, 10, 9, "
      "10]\"}]\n");
  CHECK(end_of(ran) == "");
  CHECK(ran.log(0).findings.empty());
}

TEST_CASE("hooks that automatic optimization alone calls are reported of under manual") {
  for (const char* hook : {"optimizer_step", "optimizer_zero_grad", "configure_gradient_clipping",
                           "lr_scheduler_step"}) {
    const std::string program = std::string("program:\n  ") + hook + ": [{host: 1 ms}]\n";
    const std::string manual = "  automatic_optimization: false\n  training_step: [forward]\n";
    CHECK(has_problem(prepared(text("max_epochs: 1", program + manual)), Problem::Kind::warning,
                      "under manual optimization Lightning does not call"));
    CHECK_FALSE(
        has_problem(prepared(text("max_epochs: 1", program)), Problem::Kind::warning, hook));
  }
}

TEST_CASE("clipping to which the strategy does not listen is reported, and which one holds") {
  const auto of = [](const std::string& configuration, const std::string& more,
                     const std::string& program) {
    return prepared(
        "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
        "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, " +
        more + "strategy: {DeepSpeedStrategy: {config: {zero_optimization: {stage: 2}" +
        configuration + "}}}}\ndata: {train: {samples: 8, batch_size: 2}}\n" + program);
  };
  const std::string val = "gradient_clip_val: 0.5, ";
  const Preparation other = of(", gradient_clipping: 0.25", val, "");
  CHECK(other.gradient_clipping.limit == 0.25);
  CHECK(has_problem(other, Problem::Kind::note, "which clips by the norm 0.25"));
  const Preparation none = of(", gradient_clipping: 0", val, "");
  CHECK(none.gradient_clipping.algorithm == GradientClipping::Algorithm::none);
  CHECK(has_problem(none, Problem::Kind::note, "which clips nothing"));
  for (const char* same : {", gradient_clipping: 0.5", ""}) {
    const Preparation alike = of(same, val, "");
    CHECK(alike.gradient_clipping.limit == 0.5);
    CHECK_FALSE(has_problem(alike, Problem::Kind::note, "gradient_clip_val"));
  }
  const Preparation hook = of("", "", "program: {configure_gradient_clipping: [clip_gradients]}\n");
  CHECK(has_problem(hook, Problem::Kind::warning, "does not change how gradients are clipped"));
  CHECK_FALSE(has_problem(hook, Problem::Kind::warning, "`clip_gradients` clips nothing"));
  const Preparation by_hand =
      of("", "",
         "program:\n  automatic_optimization: false\n  training_step: [forward, {backward: "
         "loss}, {clip_gradients: 1.0}, optimizer_step]\n");
  CHECK(has_problem(by_hand, Problem::Kind::warning, "`clip_gradients` clips nothing"));
}

TEST_CASE("hooks of 1.x log where Lightning 1.6 lets them") {
  for (const char* hook : {"on_epoch_start", "on_epoch_end", "on_batch_start", "on_batch_end"}) {
    const Ran ran = train(
        "version: 1\nversions: {lightning: \"1.6\"}\n"
        "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1, "
        "enable_checkpointing: false}\nprogram: {" +
        std::string(hook) + ": [{log: {name: x, value: 1.0}}]}\n");
    INFO(hook);
    CHECK(end_of(ran) == "");
    CHECK(ran.log(0).metrics.at("x") == 1);
  }
}

TEST_CASE("what Lightning refuses once it knows the data has the place of its key") {
  const auto line_of = [](const Ran& ran, size_t rank = 0) {
    const Site* const site = ran.preparation.sites.find(ran.result.ends[rank].site);
    return site == nullptr ? std::string() : site->description;
  };
  CHECK(line_of(train(text("max_epochs: 1, val_check_interval: 100", ""))) ==
        "trainer.val_check_interval");
  CHECK(line_of(train(text("max_epochs: 1, limit_val_batches: 0.01",
                           "program: {validation_step: [forward]}\n"))) ==
        "trainer.limit_val_batches");
  CHECK(line_of(train(text("max_epochs: 1", "", "samples: 1, sampler: unrepeated")), 1) ==
        "the loader");
}

TEST_CASE("a part of an epoch is no interval where batches are counted over epochs") {
  const auto refuses = [](const std::string& interval) {
    return has_problem(
        prepared(text("max_epochs: 1, check_val_every_n_epoch: null" + interval, "")),
        Problem::Kind::refused, "`val_check_interval` should be an integer");
  };
  CHECK(refuses(", val_check_interval: 0.5"));
  CHECK(refuses(", val_check_interval: 1.0"));
  CHECK_FALSE(refuses(", val_check_interval: 5"));
  CHECK_FALSE(refuses(""));
}

TEST_CASE("a DataLoader that shuffles no samples cannot be made") {
  const auto refuses = [](const std::string& loader) {
    return has_problem(prepared(text("max_epochs: 1", "", loader)), Problem::Kind::refused,
                       "num_samples=0");
  };
  CHECK(refuses("samples: 0"));
  CHECK_FALSE(refuses("samples: 0, shuffle: false"));
  CHECK_FALSE(refuses("samples: 1"));
}

TEST_CASE("dp does not take manual optimization") {
  const std::string scenario =
      "version: 1\nversions: {lightning: \"1.6\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [4], layers: [{Linear: [4, 2]}]}\ndata: {train: {samples: 16, batch_size: "
      "2}}\n"
      "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: ";
  const std::string manual =
      "}\nprogram: {automatic_optimization: false, training_step: [forward, {backward: loss}, "
      "optimizer_step, zero_grad]}\n";
  CHECK(has_problem(prepared(scenario + "dp" + manual), Problem::Kind::refused,
                    "dp does not support manual optimization"));
  CHECK(prepared(scenario + "ddp" + manual).runnable());
  std::string one_device = scenario + "dp" + manual;
  one_device.replace(one_device.find("devices: 2"), 10, "devices: 1");
  CHECK(prepared(one_device).runnable());  // it has no replicas
}

TEST_CASE("a version outside those that are modelled is unsupported, with the nearest one") {
  const auto told = [](const std::string& library, const std::string& version) {
    const Preparation preparation =
        prepared("versions: {" + library + ": \"" + version + "\"}\n" + text("max_epochs: 1", ""));
    if (preparation.problems.empty()) {
      CHECK(preparation.runnable());
      return std::string();
    }
    // Whatever else a rule of another version would say is left out.
    CHECK(preparation.problems.size() == 1);
    const Problem& problem = preparation.problems.front();
    CHECK(problem.kind == Problem::Kind::unsupported);
    CHECK(problem.place.line == 1);
    return problem.message + " | " + problem.remedy;
  };
  CHECK(told("lightning", "2.6.6").empty());
  CHECK(told("torch", "2.11.1").empty());
  CHECK(told("torchmetrics", "1.0").empty());
  CHECK(told("lightning", "3.7") ==
        "lightning 3.7 is not modelled; versions 1.4 to 2.6 are | "
        "write versions: {lightning: \"2.6\"}, the nearest one that is modelled");
  CHECK(told("lightning", "0.7") ==
        "lightning 0.7 is not modelled; versions 1.4 to 2.6 are | "
        "write versions: {lightning: \"1.4\"}, the nearest one that is modelled");
  CHECK(told("torch", "0.0.1") ==
        "torch 0.0.1 is not modelled; versions 1.6 to 2.11 are | "
        "write versions: {torch: \"1.6\"}, the nearest one that is modelled");
  CHECK(told("torch", "2.12") ==
        "torch 2.12 is not modelled; versions 1.6 to 2.11 are | "
        "write versions: {torch: \"2.11\"}, the nearest one that is modelled");
  CHECK(told("torchmetrics", "0.0.1") ==
        "torchmetrics 0.0.1 is not modelled; versions 1.0 to 1.9 are | "
        "write versions: {torchmetrics: \"1.0\"}, the nearest one that is modelled");
  CHECK(told("nccl", "2.4") ==
        "nccl 2.4 is not modelled; versions 2.8 to 2.30 are | "
        "write versions: {nccl: \"2.8\"}, the nearest one that is modelled");
}

TEST_CASE("a version of a library that no rule asks for is noted as without effect") {
  const Preparation preparation =
      prepared("versions: {fairscale: \"0.4\"}\n" + text("max_epochs: 1", ""));
  CHECK(preparation.runnable());
  REQUIRE(preparation.problems.size() == 1);
  CHECK(preparation.problems.front().kind == Problem::Kind::note);
  CHECK(preparation.problems.front().message ==
        "`versions.fairscale` has no effect: no rule here depends on it");
}

}  // namespace refused_settings_test
