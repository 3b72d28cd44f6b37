// Worked out by hand from callbacks/early_stopping.py, model_checkpoint.py and lr_monitor.py.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace callbacks_test {

namespace {

// Two ranks, two steps per epoch; `v` is what the expression gives.
std::string text_of(const std::string& value, const std::string& trainer,
                    const std::string& more = "") {
  return R"yaml(
version: 1
model: {layers: [{Linear: [2, 1]}], input: [2], loss: MSELoss}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step: [{log: {name: v, value: ")yaml" +
         value + R"yaml("}}]
trainer: {accelerator: cpu, devices: 2, strategy: ddp, num_sanity_val_steps: 0, )yaml" +
         trainer + "}\n" + more;
}

Ran train(const std::string& value, const std::string& trainer, const std::string& more = "") {
  return run_text(text_of(value, trainer, more), standard_strategies());
}

std::vector<std::string> files_of(const CheckpointLog& checkpoint) {
  std::vector<std::string> files;
  for (const auto& [file, score] : checkpoint.kept) {
    files.push_back(file);
  }
  return files;
}

const CheckpointLog& checkpoint(const Ran& ran, size_t rank = 0) {
  return ran.log(rank).checkpoints.at(0);
}

bool refuses(const std::string& trainer, const std::string& message, const std::string& more = "") {
  const Preparation preparation =
      prepare(scenario_of(text_of("1.0", trainer, more)), standard_strategies());
  return std::any_of(preparation.problems.begin(), preparation.problems.end(),
                     [&](const Problem& problem) {
                       return problem.kind == Problem::Kind::refused && problem.code == "LS501" &&
                              problem.message.find(message) != std::string::npos;
                     });
}

}  // namespace

TEST_CASE("before Lightning 1.9 all ranks must want to stop") {
  const std::string value = "rank * (epoch - 5.0)";  // rank 0: 0, 0, ..; rank 1 improves for long
  const std::string stops =
      "max_epochs: 6, callbacks: [{EarlyStopping: {monitor: v, mode: max, "
      "patience: 1}}]";
  const Ran now = train(value, stops);
  CHECK(now.log(0).epochs == 2);
  CHECK(now.log(1).epochs == 2);
  const Ran before = train(value, stops, "versions: {lightning: \"1.6\"}\n");
  CHECK(before.log(0).epochs == 6);
  CHECK(before.log(1).epochs == 6);
  CHECK_FALSE(before.log(0).stopped_epoch);
}

TEST_CASE("EarlyStopping looks after validation where that does not run in each epoch as a whole") {
  const std::string stops =
      "max_epochs: 6, callbacks: [{EarlyStopping: {monitor: v, patience: 1}}]";
  CHECK(train("1.0", stops).log(0).epochs == 2);
  // Epochs 1 and 3 validate.
  CHECK(train("1.0", stops + ", check_val_every_n_epoch: 2").log(0).epochs == 4);
  // Four looks in two epochs: the second stops in the middle of the first, after its last batch.
  CHECK(train("1.0", stops + ", val_check_interval: 0.5").log(0).steps == 2);
  CHECK(train("1.0", stops + ", min_epochs: 4").log(0).epochs == 4);
  CHECK(train("1.0", "fast_dev_run: 1, callbacks: [{EarlyStopping: {monitor: nothing}}]")
            .result.ends[0]
            .message == "");
}

TEST_CASE("a missing metric raises on that rank, and is reported with what there is") {
  const Ran strict = train("1.0", "max_epochs: 2, callbacks: [{EarlyStopping: {monitor: w}}]");
  REQUIRE(strict.result.ends[1].kind == RankEnd::Kind::raised);
  CHECK(strict.preparation.sites.place(strict.result.ends[1].site).starts_with("scenario.yaml:7"));
  REQUIRE(strict.log(1).findings.size() == 1);
  CHECK(strict.log(1).findings[0].remedy.find("`v`") != std::string::npos);
  const Ran loose =
      train("1.0", "max_epochs: 2, callbacks: [{EarlyStopping: {monitor: w, strict: false}}]");
  CHECK(loose.result.ends[1].kind == RankEnd::Kind::finished);
  const Ran checkpoint =
      train("1.0", "max_epochs: 2, callbacks: [{ModelCheckpoint: {monitor: w}}]");
  CHECK(checkpoint.result.ends[0].kind == RankEnd::Kind::raised);
  const Ran never = train("1.0",
                          "max_epochs: 2, limit_val_batches: 0, callbacks: "
                          "[{ModelCheckpoint: {monitor: w}}]");
  CHECK(never.result.ends[0].kind == RankEnd::Kind::finished);
  CHECK(never.log(0).checkpoints.at(0).best == "");
  const Ran plateau =
      train("1.0", "max_epochs: 2", "lr_scheduler: {ReduceLROnPlateau: {monitor: w}}\n");
  CHECK(plateau.result.ends[0].kind == RankEnd::Kind::raised);
  const Ran skipped = train("1.0", "max_epochs: 2",
                            "lr_scheduler: {ReduceLROnPlateau: {monitor: w, strict: false}}\n");
  CHECK(skipped.result.ends[0].kind == RankEnd::Kind::finished);
}

TEST_CASE("checkpoints come by steps or by epochs") {
  CHECK(checkpoint(train("1.0", "max_epochs: 3")).best == "epoch=2-step=6.ckpt");
  CHECK(
      checkpoint(train("1.0", "max_epochs: 3, callbacks: [{ModelCheckpoint: {every_n_epochs: 2}}]"))
          .best == "epoch=1-step=4.ckpt");
  CHECK(checkpoint(train("1.0",
                         "max_epochs: 3, callbacks: [{ModelCheckpoint: "
                         "{every_n_train_steps: 3, save_top_k: -1}}]"))
            .saved == 2);
  const Ran files = train("epoch",
                          "max_epochs: 4, callbacks: [{ModelCheckpoint: {monitor: v, mode: "
                          "max, save_top_k: 2, filename: \"{v:.1f}\"}}]");
  CHECK(files_of(checkpoint(files)) == std::vector<std::string>{"v=2.0.ckpt", "v=3.0.ckpt"});
  CHECK(checkpoint(train("1.0", "fast_dev_run: 1")).best == "");
}

TEST_CASE("a file that exists gets a version") {
  const Ran versions = train("1.0",
                             "max_epochs: 3, callbacks: [{ModelCheckpoint: {monitor: v, "
                             "save_top_k: -1, filename: same}}]");
  CHECK(files_of(checkpoint(versions)) ==
        std::vector<std::string>{"same.ckpt", "same-v1.ckpt", "same-v2.ckpt"});
  CHECK(files_of(checkpoint(versions, 1)) == files_of(checkpoint(versions)));
  // Until 2.6 rank 0 sent its answer as a pickled bool: size and bytes.
  const Ran before = train("1.0",
                           "max_epochs: 3, callbacks: [{ModelCheckpoint: {monitor: v, "
                           "save_top_k: -1, filename: same}}]",
                           "versions: {lightning: \"2.5.6\"}\n");
  CHECK(files_of(checkpoint(before, 1)) == files_of(checkpoint(versions)));
  CHECK(count(before.result, 1, OpKind::broadcast) > count(versions.result, 1, OpKind::broadcast));
}

TEST_CASE("from 2.5.3 on `last` is written where something else was, or at the end") {
  const std::string last =
      "max_epochs: 3, callbacks: [{ModelCheckpoint: {save_top_k: 0, save_last: "
      "true}}]";
  CHECK(checkpoint(train("1.0", last)).saved == 1);
  CHECK(checkpoint(train("1.0", last, "versions: {lightning: \"2.5.2\"}\n")).saved == 3);
  CHECK(checkpoint(train("1.0", last)).last == "last.ckpt");
}

TEST_CASE("rank 0 alone writes, at the rate of the disk") {
  const std::string cluster = "cluster: {preset: dgx-a100, disk: 1 kB/s}\n";
  const Ran ran = train("1.0", "max_epochs: 1", cluster);
  CHECK(count(ran.result, 0, OpKind::host) == 1 + count(ran.result, 1, OpKind::host));
  const Ran none = train("1.0", "max_epochs: 1, enable_checkpointing: false", cluster);
  CHECK(none.log(0).checkpoints.empty());
  // 3 parameters of 4 bytes; SGD without momentum keeps no state.
  CHECK(ran.result.total_time - none.result.total_time > Time(12 * picoseconds_per_second / 1000));
  CHECK(ran.result.total_time - none.result.total_time < Time(13 * picoseconds_per_second / 1000));
}

TEST_CASE("LearningRateMonitor puts the rate where others read it") {
  const Ran ran = train("1.0", "max_epochs: 3, callbacks: [LearningRateMonitor]",
                        "optimizer: {SGD: {lr: 0.5}}\nlr_scheduler: {StepLR: {step_size: 1}}\n");
  CHECK(ran.log(1).metrics.at("lr-SGD") == Approx(0.005));
  CHECK(ran.log(1).learning_rates.at(0).at(2) == Approx(0.005));
}

TEST_CASE("schedulers step by epochs or by optimizer steps, every so often") {
  const auto rates = [](const std::string& more) {
    return train("1.0", "max_epochs: 3", "optimizer: {SGD: {lr: 1.0}}\nlr_scheduler: " + more)
        .log(0)
        .learning_rates.at(0);
  };
  using Rates = std::vector<double>;
  CHECK(rates("{ExponentialLR: {gamma: 0.5}}\n") == Rates{1, 0.5, 0.25, 0.125});
  CHECK(rates("{ExponentialLR: {gamma: 0.5, interval: step}}\n") ==
        Rates{1, 0.25, 0.0625, 0.015625});
  CHECK(rates("{ExponentialLR: {gamma: 0.5, frequency: 2}}\n") == Rates{1, 1, 0.5, 0.5});
  CHECK(rates("{LinearLR: {start_factor: 0.5, total_iters: 2}}\n") == Rates{0.5, 0.75, 1, 1});
  // torch/optim/lr_scheduler.py: the first factor is applied at once, and the step that would end
  // it is never reached; PolynomialLR has nothing to apply.
  CHECK(rates("{LinearLR: {start_factor: 0.5, total_iters: 0}}\n") == Rates{0.5, 0.5, 0.5, 0.5});
  CHECK(rates("{ConstantLR: {factor: 0.5, total_iters: 0}}\n") == Rates{0.5, 0.5, 0.5, 0.5});
  CHECK(rates("{PolynomialLR: {total_iters: 0}}\n") == Rates{1, 1, 1, 1});
  CHECK(rates("[{ExponentialLR: {gamma: 0.5}}, {StepLR: {step_size: 2, gamma: 0.5}}]\n") ==
        Rates{1, 0.5, 0.125, 0.0625});
}

TEST_CASE("what Lightning refuses about callbacks and schedulers is refused") {
  CHECK(refuses("callbacks: [EarlyStopping]", "needs the argument `monitor`"));
  CHECK(refuses("callbacks: [{EarlyStopping: {monitor: v, mode: auto}}]", "min or max"));
  CHECK(refuses("callbacks: [{ModelCheckpoint: {save_top_k: 2}}]", "no `monitor`"));
  CHECK(refuses("callbacks: [{ModelCheckpoint: {save_top_k: -2}}]", "at least -1"));
  CHECK(refuses("callbacks: [ModelCheckpoint], enable_checkpointing: false", "is false"));
  CHECK(refuses("callbacks: [ModelCheckpoint, ModelCheckpoint]", "two callbacks of one state"));
  CHECK(refuses("callbacks: [{ModelCheckpoint: {every_n_epochs: 1, every_n_train_steps: 1}}]",
                "cannot be combined"));
  CHECK(refuses("callbacks: [LearningRateMonitor], logger: false", "no logger"));
  CHECK(refuses("max_epochs: 1", "must include a monitor", "lr_scheduler: ReduceLROnPlateau\n"));
  CHECK(refuses("max_epochs: 1", "\"step\" or \"epoch\"",
                "lr_scheduler: {StepLR: {step_size: 1, interval: batch}}\n"));
}

TEST_CASE("two checkpoint callbacks of one folder keep their files apart") {
  const Ran ran = train("1.0 * epoch",
                        "max_epochs: 2, callbacks: [{ModelCheckpoint: {monitor: v}}, "
                        "{ModelCheckpoint: {monitor: v, mode: max}}]",
                        "");
  REQUIRE(ran.log(0).checkpoints.size() == 2);
  const auto file = [&ran](size_t index) { return ran.log(0).checkpoints[index].best; };
  CHECK(file(0).find("-v1") == std::string::npos);
  CHECK(file(0) != file(1));
}

}  // namespace callbacks_test
