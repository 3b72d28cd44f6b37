// What `lockstep sweep` refuses, before anything runs and without a byte of a file lost.
#include <catch2/catch.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace sweep_bad_input_test {

namespace {

const std::string training = R"(version: 1
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 1}
data: {train: {samples: 16, batch_size: 4}}
)";

/// Runs in a folder that has the training.
class Refusals {
 public:
  Refusals() { folder.write("train.yaml", training); }

  // Nothing is written, whatever is refused.
  void check(const std::string& arguments, int code, const std::string& says) const {
    const Ended ended = run_program("sweep " + arguments, "2>&1", folder.path());
    INFO("sweep " << arguments << "\n" << ended.output);
    CHECK(ended.code == code);
    CHECK(ended.output.starts_with("error: "));
    CHECK(ended.output.find(says) != std::string::npos);
    CHECK(folder.read("out.jsonl").empty());
  }

  Folder folder;
};

const std::string vary = "train.yaml --vary data.train.batch_size=2,4 ";

}  // namespace

TEST_CASE("an unknown key or a value of the wrong type is refused before anything runs") {
  const Refusals refusals;
  refusals.check("train.yaml --vary trainer.devises=2,4 --out out.jsonl", 3,
                 "--vary trainer.devises=2:1:9");
  refusals.check("train.yaml --vary trainer.max_steps=2,many --out out.jsonl", 3,
                 "`max_steps` takes an int, not `many`");
  refusals.check("train.yaml --vary trainer.devices=2,abc --out out.jsonl", 3,
                 "`devices` takes a number, `auto`, numbers with commas or a list of whole "
                 "numbers, not `abc`");
  refusals.check("train.yaml --vary trainer.limit_train_batches=0.5,few --out out.jsonl", 3,
                 "`limit_train_batches` takes an int or a float, not `few`");
  refusals.check("train.yaml --vary trainer.deterministic=warn,perhaps --out out.jsonl", 3,
                 "`deterministic` takes a bool or `warn`, not `perhaps`");
  refusals.check(
      "train.yaml --vary trainer.devices=2,4 --vary data.train.batch_size=0 --out out.jsonl", 3,
      "`batch_size` is at least 1, not 0");
  refusals.check("train.yaml --vary cases=1 --out out.jsonl", 3, "`--vary` cannot change `cases`");
  refusals.folder.write("list.csv", "trainer.devices,trainer.max_steps\n2,1\n2,1.5\n");
  refusals.check("train.yaml --vary-file list.csv --out out.jsonl", 3,
                 "--vary-file trainer.max_steps=1.5");
  refusals.folder.write("text.csv", "trainer.devices\n2\nabc\n");
  refusals.check("train.yaml --vary-file text.csv --out out.jsonl", 3,
                 "--vary-file trainer.devices=abc");
  refusals.check("none.yaml --vary a=1", 3, "none.yaml");
}

TEST_CASE("options that do not fit one another are refused") {
  const Refusals refusals;
  refusals.check("train.yaml", 2, "nothing to vary");
  refusals.check("", 2, "a scenario file is missing");
  refusals.check(vary + "--vary-file list.csv", 2, "exclude each other");
  refusals.check(vary + "--vary data.train.batch_size=8", 2, "is there twice");
  refusals.check(vary + "--set data.train.batch_size=8", 2, "--set sets it");
  refusals.check("train.yaml --vary seed_everything=1,2 --seed 3", 2, "--seed sets it");
  refusals.check(vary + "--resume", 2, "--resume needs --out FILE");
  refusals.check(vary + "--shard 1/2", 2, "--shard needs --out FILE");
  refusals.check(vary + "--out out.jsonl --shard 9/8", 2, "there is no shard 9 of 8");
  refusals.check(vary + "--out out.jsonl --shard 0/8", 2, "there is no shard 0 of 8");
  refusals.check(vary + "--out out.jsonl --shard 8", 2, "--shard takes a shard");
  refusals.check(vary + "--out out.jsonl --sort speed", 2, "no result or varied key `speed`");
  refusals.check(vary + "--out out.jsonl --sort step_time:up", 2, "there is no order `up`");
  refusals.check(vary + "--out out.jsonl --where 'memory.peak < 3'", 2, "memory.peak < 3");
  refusals.check(vary + "--out out.jsonl --plot p.svg --x trainer.devices", 2, "is not varied");
  refusals.check(vary + "--out out.jsonl --plot p.svg --y speed", 2, "no result `speed`");
  refusals.check("train.yaml --vary trainer.strategy=ddp,fsdp --out out.jsonl --plot p.svg", 2,
                 "`ddp` of trainer.strategy is none");
  refusals.check(vary + "--out out.jsonl --plot none/p.svg", 74, "none/p.svg");
  refusals.check(vary + "--out train.yaml", 74, "it is the scenario");
  CHECK(refusals.folder.read("train.yaml") == training);
  refusals.folder.write("two.yaml", training + "cases: {a: {}, b: {}}\n");
  refusals.check("two.yaml --vary data.train.batch_size=2,4", 2, "write two.yaml:a");
}

TEST_CASE("a file of rows goes on only with the sweep that began it") {
  const Refusals refusals;
  const Folder& folder = refusals.folder;
  const auto run = [&](const std::string& arguments) {
    return run_program("sweep " + arguments, "2>&1", folder.path());
  };
  REQUIRE(run(vary + "--out rows.jsonl").code == 0);
  const std::string rows = folder.read("rows.jsonl");
  refusals.check(vary + "--out rows.jsonl", 2, "rows.jsonl is there already");
  refusals.check("train.yaml --vary data.train.batch_size=2,8 --out rows.jsonl --resume", 2,
                 "the values of `data.train.batch_size`: 2, 4 there, 2, 8 here");
  refusals.check(vary + "--seed 1 --out rows.jsonl --resume", 2,
                 "settings: none there, seed_everything=1 here");
  refusals.check(vary + "--out rows.jsonl --resume --shard 1/2", 2,
                 "rows.jsonl holds shard 1/1, not 1/2");
  folder.write("train.yaml", training + "optimizer: {SGD: {lr: 0.1}}\n");
  refusals.check(vary + "--out rows.jsonl --resume", 2, "content of the scenario");
  CHECK(folder.read("rows.jsonl") == rows);
  folder.write("train.yaml", training);
  const Ended again = run(vary + "--out rows.jsonl --resume");
  CHECK(again.code == 0);
  CHECK(folder.read("rows.jsonl") == rows);
  folder.write("damaged.jsonl", rows + "{}\n");
  refusals.check(vary + "--out damaged.jsonl --resume", 7, "line 4 is no row of this sweep");
  CHECK(folder.read("damaged.jsonl") == rows + "{}\n");
  folder.write("other.txt", "my notes\n");
  refusals.check(vary + "--out other.txt --resume", 7, "line 1 is not the first line of a sweep");
  CHECK(folder.read("other.txt") == "my notes\n");
}

TEST_CASE("shards are merged only where they are all of one sweep") {
  const Refusals refusals;
  const Folder& folder = refusals.folder;
  const auto run = [&](const std::string& arguments) {
    REQUIRE(run_program("sweep " + arguments, "2>&1", folder.path()).code == 0);
  };
  for (const std::string shard : {"1", "2", "3"}) {
    run(vary + "--shard " + shard + "/3 --out " + shard + ".jsonl");
  }
  run("train.yaml --vary data.train.batch_size=2,8 --shard 3/3 --out other.jsonl");
  run(vary + "--shard 1/2 --out half.jsonl");
  refusals.check("--merge 1.jsonl 3.jsonl --out out.jsonl", 3, "a shard is missing: 2/3");
  refusals.check("--merge 1.jsonl", 3, "shards are missing: 2/3, 3/3");
  refusals.check("--merge 1.jsonl 2.jsonl other.jsonl --out out.jsonl", 3,
                 "other.jsonl and 1.jsonl are of different sweeps");
  refusals.check("--merge 1.jsonl half.jsonl", 3, "half.jsonl is one of 2 shards");
  refusals.check("--merge 1.jsonl none.jsonl", 3, "none.jsonl: file not found");
  refusals.check("--merge", 2, "the files to merge are missing");
  refusals.check("--merge 1.jsonl --resume", 2, "takes no --resume");
  refusals.check("--merge 1.jsonl 2.jsonl 3.jsonl --out 2.jsonl", 74, "a file to merge");
  std::string forged = folder.read("1.jsonl");
  forged.replace(forged.find("\"ok\""), 4, "\"no\"");
  folder.write("forged.jsonl", forged);
  refusals.check("--merge 1.jsonl forged.jsonl 2.jsonl 3.jsonl", 3, "differ in case 1");
  std::string mistyped = folder.read("1.jsonl");
  mistyped.replace(mistyped.find("\"codes\":[]"), 10, "\"codes\":{}");
  folder.write("mistyped.jsonl", mistyped);
  refusals.check("--merge mistyped.jsonl 2.jsonl 3.jsonl --out out.jsonl", 7,
                 "mistyped.jsonl: line 2 is no row of this sweep: `codes` is an object, not a list "
                 "of texts\n   = name files that `lockstep sweep --out` wrote");
  folder.write("empty.jsonl", "");
  refusals.check("--merge empty.jsonl 1.jsonl", 3, "empty.jsonl is empty");
  folder.write("torn.jsonl", folder.read("1.jsonl").substr(0, 50));
  refusals.check("--merge torn.jsonl 1.jsonl", 3, "torn.jsonl ends within its first line");
  // The same file twice says nothing new, and a shard without a case is there all the same.
  const Ended merged =
      run_program("sweep --merge 1.jsonl 1.jsonl 2.jsonl 3.jsonl", "2>&1", folder.path());
  CHECK(merged.code == 0);
  CHECK(merged.output.find("2 cases: 2 predicted") != std::string::npos);
}

TEST_CASE("two processes do not write to one file of rows") {
  const Refusals refusals;
  refusals.folder.write("rows.jsonl", "");
  const Ended ended =
      run_shell("cd " + refusals.folder.path() + "; flock rows.jsonl " +
                std::string(LOCKSTEP_PROGRAM) + " sweep " + vary + "--out rows.jsonl");
  CHECK(ended.code == 2);
  CHECK(ended.output.find("another process writes to rows.jsonl") != std::string::npos);
}

TEST_CASE("rows that cannot be written end the sweep with those that could be") {
  const Refusals refusals;
  const Ended ended =
      run_program(vary + "--out /dev/full", "2>&1", refusals.folder.path(), "true; ");
  CHECK(ended.code != 0);
  const Ended limited = run_shell("cd " + refusals.folder.path() + "; (ulimit -f 2; " +
                                  std::string(LOCKSTEP_PROGRAM) +
                                  " sweep train.yaml --vary data.train.batch_size=1,2,3,4,5,6,7,8 "
                                  "--out rows.jsonl)");
  INFO(limited.output);
  CHECK(limited.code == 74);
  CHECK(limited.output.find("cannot write rows.jsonl") != std::string::npos);
  const Ended resumed = run_program(
      "sweep train.yaml --vary data.train.batch_size=1,2,3,4,5,6,7,8 --out rows.jsonl --resume",
      "2>&1", refusals.folder.path());
  CHECK(resumed.code == 0);
  CHECK(lines_of(refusals.folder.read("rows.jsonl")) == 9);
}

}  // namespace sweep_bad_input_test
