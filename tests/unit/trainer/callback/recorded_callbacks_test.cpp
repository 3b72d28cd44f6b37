// Trainings that pytorch-lightning 2.6.6 ran with two Gloo processes (accelerator="cpu",
// strategy="ddp", torch 2.11), recorded by its flight recorder: what our ranks must do too.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace recorded_callbacks_test {

namespace {

// The k-th value of each list is logged as `v` in epoch k.
Ran train(const std::string& rank_0, const std::string& rank_1, const std::string& more,
          const std::string& trainer = "") {
  return run_text(R"yaml(
version: 1
model: {layers: [{Linear: [2, 1]}], input: [2], loss: MSELoss}
optimizer: {SGD: {lr: 0.5}}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step:
    - let: {a: ")yaml" +
                      rank_0 + R"yaml(", b: ")yaml" + rank_1 + R"yaml("}
    - if: rank == 0
      then: [{log: {name: v, value: "a[epoch]"}}]
      else: [{log: {name: v, value: "b[epoch]"}}]
)yaml" + more + R"yaml(
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 4, num_sanity_val_steps: 0,
          logger: false, default_root_dir: /tmp/cb_exp/root_default)yaml" +
                      trainer + "}\n",
                  standard_strategies());
}

// What a rank calls from its first training batch on, without DDP's own: b broadcast, | barrier, r
// all_reduce.
std::string calls(const Ran& ran, int32_t rank) {
  std::string text;
  bool trains = false;
  ran.result.journal->lane(rank, 0).for_each([&](const Row& row) {
    const std::string place = ran.preparation.sites.place(row.site);
    trains = trains || place == "Lightning, broadcast of the SIGTERM flag";
    if (trains && row.row == RowKind::op && is_communication(row.kind) &&
        !place.starts_with("ddp:")) {
      text += row.kind == OpKind::broadcast ? 'b' : row.kind == OpKind::barrier ? '|' : 'r';
    }
  });
  return text;
}

void check_ended(const Ran& ran) {
  CHECK_FALSE(ran.result.hung);
  for (const RankEnd& end : ran.result.ends) {
    CHECK(end.message == "");
  }
}

using Kept = std::vector<std::pair<std::string, double>>;

}  // namespace

TEST_CASE("ranks that monitor their own values believe in other checkpoints") {
  const Ran ran = train("[3.0, 1, 2, 0]", "[1.0, 3, 2, 4]", "",
                        ", callbacks: [{ModelCheckpoint: {monitor: v, save_top_k: 2, save_last: "
                        "true}}]");
  check_ended(ran);
  for (const int32_t rank : {0, 1}) {
    CHECK(calls(ran, rank) ==
          "bb|r||r|"
          "bb|r||r|"
          "bb|r|r||r|"
          "bb|r");
  }
  const CheckpointLog& zero = ran.log(0).checkpoints.at(0);
  const CheckpointLog& one = ran.log(1).checkpoints.at(0);
  CHECK(zero.best == "epoch=1-step=4.ckpt");
  CHECK(one.best == "epoch=0-step=2.ckpt");
  CHECK(zero.best_score == 1.0);
  CHECK(one.best_score == 1.0);
  CHECK(zero.kept == Kept{{"epoch=1-step=4.ckpt", 1}, {"epoch=2-step=6.ckpt", 2}});
  CHECK(one.kept == Kept{{"epoch=0-step=2.ckpt", 1}, {"epoch=2-step=6.ckpt", 2}});
  CHECK(zero.last == "last.ckpt");
}

TEST_CASE("a checkpoint is saved where all ranks see an improvement") {
  const Ran ran = train("[3.0, 1, 2, 0]", "[1.0, 3, 0, 4]", "",
                        ", callbacks: [{ModelCheckpoint: {monitor: v}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bb|r|"
        "bb|r"
        "bb|r|r|"
        "bb|r");
  CHECK(ran.log(0).checkpoints.at(0).best == "epoch=2-step=6.ckpt");
  CHECK(ran.log(1).checkpoints.at(0).best == "epoch=2-step=6.ckpt");
  CHECK(ran.log(0).checkpoints.at(0).best_score == 2.0);
  CHECK(ran.log(1).checkpoints.at(0).best_score == 0.0);
}

TEST_CASE("any rank that wants to stop stops all") {
  const Ran ran = train("[3.0, 2, 1, 0]", "[1.0, 3, 2, 4]", "",
                        ", callbacks: [{EarlyStopping: {monitor: v, patience: 2}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bb|r|r|"
        "bb|r|r|"
        "bb|r|r|");
  CHECK(calls(ran, 1) == calls(ran, 0));
  for (const size_t rank : {0, 1}) {
    CHECK(ran.log(rank).epochs == 3);
    CHECK(ran.log(rank).steps == 6);
    CHECK(ran.log(rank).stopped_epoch == 2);
    CHECK(ran.log(rank).checkpoints.at(0).best == "epoch=2-step=6.ckpt");
  }
  CHECK_FALSE(ran.log(0).monitors.at(0).turns.at(2).own);
  CHECK(ran.log(1).monitors.at(0).turns.at(2).own);
}

TEST_CASE("a scheduler that monitors a rank's own value gives each rank its own rate") {
  const Ran ran =
      train("[3.0, 2, 1, 0]", "[1.0, 3, 2, 4]",
            "lr_scheduler: {ReduceLROnPlateau: {patience: 0, factor: 0.5, monitor: v}}");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bb|r|"
        "bb|r|"
        "bb|r|"
        "bb|r|");
  CHECK(ran.log(0).learning_rates.at(0) == std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5});
  CHECK(ran.log(1).learning_rates.at(0) == std::vector<double>{0.5, 0.5, 0.25, 0.125, 0.0625});
  CHECK_FALSE(ran.log(0).final_parameters.at(0) == ran.log(1).final_parameters.at(0));
}

TEST_CASE("with validation inside the epoch, stopping and saving come after it") {
  const Ran ran = train("[1.0, 1, 1, 1]", "[1.0, 1, 1, 1]", "",
                        ", val_check_interval: 0.5, callbacks: [{EarlyStopping: {monitor: v, "
                        "patience: 1}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "b|r|r|"
        "b|r|r|");
  CHECK(ran.log(0).steps == 2);
  CHECK(ran.log(0).checkpoints.at(0).best == "epoch=0-step=2.ckpt");
}

TEST_CASE("checkpoints by steps, all kept") {
  const Ran ran = train("[1.0, 1, 1, 1]", "[1.0, 1, 1, 1]", "",
                        ", limit_val_batches: 1, max_steps: 6, callbacks: [{ModelCheckpoint: "
                        "{every_n_train_steps: 3, save_top_k: -1}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bbb|r|"
        "bbb|r|");
  CHECK(ran.log(1).checkpoints.at(0).best == "epoch=2-step=6.ckpt");
}

TEST_CASE("checkpoints by steps rank by the value of the validation before") {
  const Ran ran = train("[3.0, 1, 2, 0]", "[1.0, 3, 2, 4]", "",
                        ", max_steps: 6, callbacks: [{ModelCheckpoint: {every_n_train_steps: 1, "
                        "monitor: v, save_top_k: 2, save_last: true}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bbb|r||r|"
        "b|r||r|"
        "b|r|r|"
        "b|r|r|");
  CHECK(ran.log(0).checkpoints.at(0).best == "epoch=1-step=3.ckpt");
  CHECK(ran.log(0).checkpoints.at(0).kept ==
        Kept{{"epoch=1-step=3.ckpt", 3}, {"epoch=1-step=4.ckpt", 3}});
  CHECK(ran.log(1).checkpoints.at(0).kept ==
        Kept{{"epoch=1-step=3.ckpt", 1}, {"epoch=1-step=4.ckpt", 1}});
}

TEST_CASE("each name that is taken is asked for") {
  const Ran ran =
      train("[1.0, 1, 1, 1]", "[1.0, 1, 1, 1]", "",
            ", max_steps: 6, callbacks: [{ModelCheckpoint: {monitor: v, save_top_k: -1, "
            "filename: same}}]");
  check_ended(ran);
  CHECK(calls(ran, 0) ==
        "bb|r|"
        "bb|r|r|"
        "bb|r|r|r|");
  CHECK(ran.log(1).checkpoints.at(0).kept ==
        Kept{{"same.ckpt", 1}, {"same-v1.ckpt", 1}, {"same-v2.ckpt", 1}});
}

TEST_CASE("`last` alone is written at the end, and a link costs a barrier") {
  const Ran alone =
      train("[1.0, 1, 1, 1]", "[1.0, 1, 1, 1]", "",
            ", max_steps: 6, callbacks: [{ModelCheckpoint: {save_top_k: 0, save_last: "
            "true}}]");
  check_ended(alone);
  CHECK(calls(alone, 0) == "bbbbbb|r|");
  const Ran link = train("[3.0, 1, 2, 0]", "[3.0, 1, 2, 0]", "",
                         ", callbacks: [{ModelCheckpoint: {monitor: v, save_last: link}}]");
  check_ended(link);
  CHECK(calls(link, 0) ==
        "bb|r||r|"
        "bb|r|r||r|"
        "bb|r|r|"
        "bb|r|r||r|");
  CHECK(link.log(0).checkpoints.at(0).best == "epoch=3-step=8.ckpt");
}

// int64 [1] with the size, then the 36 bytes of the folder in a pickle of 51.
TEST_CASE("the folder of the checkpoints is broadcast as a pickled text") {
  const Ran ran = train("[3.0, 2, 1, 0]", "[3.0, 2, 1, 0]", "");
  std::vector<int64_t> bytes;
  ran.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (ran.preparation.sites.place(row.site).ends_with("broadcast of its folder") &&
        row.kind == OpKind::broadcast) {
      bytes.push_back(row.bytes);
    }
  });
  CHECK(bytes == std::vector<int64_t>{8, 51});
}

}  // namespace recorded_callbacks_test
