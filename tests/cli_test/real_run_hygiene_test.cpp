// What a real run leaves, what it takes from an earlier one, and how it ends on bad days.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace real_run_hygiene_test {

namespace {

bool has(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("compare shows its help, and asks for the reports by name") {
  CHECK(run_program("compare --help").code == 0);
  const Ended ended = run_program("compare file.yaml");
  CHECK(ended.code == 2);
  CHECK(has(ended, "--reports FOLDER is missing"));
}

TEST_CASE("a deadline that is no number is a matter of usage") {
  for (const char* text : {"nan", "0", "-1", "inf", "1e9"}) {
    INFO(text);
    const Ended ended = run_program(std::string("exec file.yaml --hang-after=") + text);
    CHECK(ended.code == 2);
    CHECK(has(ended, "takes seconds from 0.01 to 1000000"));
  }
}

#ifdef LOCKSTEP_RANK_PROGRAM

namespace {

std::string bare(const std::string& statements, int ranks = 2, const std::string& more = "") {
  return "version: 1\ncluster: {ranks: " + std::to_string(ranks) +
         ", network: {bandwidth: 1 GB/s}}\nprocess_group: {backend: gloo}\n" + more +
         "program:\n  main:\n" + statements;
}

/// Both ranks of a world of two, as another launcher starts them; each reports into `folder`.
std::string both(const std::string& scenario, const std::string& folder,
                 const std::string& options = "") {
  const std::string rank = std::string(LOCKSTEP_RANK_PROGRAM) + " " + scenario + " " + options +
                           " --report-folder " + folder;
  return "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 12000)); RANK=0 " +
         rank + " & RANK=1 " + rank + " & wait; ";
}

Ended compare(const std::string& scenario, const std::string& folder,
              const std::string& before = "") {
  return run_program("compare " + scenario + " --reports " + folder, "2>&1", "", before);
}

}  // namespace

TEST_CASE("reports of two runs are not put together") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", bare("    - barrier\n"));
  // The folders are made by the ranks.
  const Ended first = compare(file, folder.file("a"), both(file, folder.file("a")));
  INFO(first.output);
  CHECK(first.code == 0);
  CHECK(compare(file, folder.file("b"), both(file, folder.file("b"))).code == 0);
  std::filesystem::copy_file(folder.file("b/rank-1.report"), folder.file("a/rank-1.report"),
                             std::filesystem::copy_options::overwrite_existing);
  const Ended mixed = compare(file, folder.file("a"));
  INFO(mixed.output);
  CHECK(mixed.code == 6);
  CHECK(has(mixed, "rank-1.report: it is not of the same run as rank-0.report"));
}

TEST_CASE("reports of another scenario are reported, whatever it expects") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", bare("    - barrier\n"));
  REQUIRE(compare(file, folder.file("a"), both(file, folder.file("a"))).code == 0);
  const std::string more = folder.write("two.yaml", bare("    - barrier\n    - barrier\n"));
  const Ended other = compare(more, folder.file("a"));
  INFO(other.output);
  CHECK(other.code == 6);
  CHECK(has(other, "it is of a different scenario or case"));
  CHECK(compare(file + " --set 'process_group.timeout=60 s'", folder.file("a")).code == 6);
  // What is expected of a run may be thought of later.
  const std::string expecting =
      folder.write("one.yaml", bare("    - barrier\n") + "expect: [no_hang]\n");
  CHECK(compare(expecting, folder.file("a")).code == 0);
  CHECK(compare(file + " --set 'verify.world_sizes=[2, 4]'", folder.file("a")).code == 0);
}

TEST_CASE("reports of a scenario whose file of values was changed are of another") {
  const Folder folder;
  folder.write("values.csv", "score,label\n0.5,1\n0.25,0\n");
  const std::string file = folder.write(
      "one.yaml",
      "version: 1\ncluster: {preset: cpu}\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
      "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 1, "
      "num_sanity_val_steps: 0}\n"
      "data: {train: {values: {csv: values.csv}, batch_size: 1}}\n");
  const Ended same = compare(file, folder.file("a"), both(file, folder.file("a")));
  INFO(same.output);
  REQUIRE(same.code == 0);
  folder.write("values.csv", "score,label\n0.5,1\n0.75,0\n");
  const Ended other = compare(file, folder.file("a"));
  INFO(other.output);
  CHECK(other.code == 6);
  CHECK(has(other, "it is of a different scenario or case"));
}

TEST_CASE("a rank takes away what an earlier run left in its name") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", bare("    - barrier\n"));
  REQUIRE(compare(file, folder.file("a"), both(file, folder.file("a"))).code == 0);
  // Alone this time: it never meets the other.
  const Ended ended = compare(file, folder.file("a"),
                              "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % "
                              "20000)) RANK=0 " LOCKSTEP_RANK_PROGRAM " --join-timeout 1 " +
                                  file + " --report-folder " + folder.file("a") + "; ");
  INFO(ended.output);
  CHECK(ended.code == 6);
  CHECK(has(ended, "holds no rank-0.report"));
}

TEST_CASE("ranks that others started say that they gave up, and how to go on") {
  const Folder folder;
  const std::string file =
      folder.write("hang.yaml", bare("    - if: rank == 0\n      then: [barrier]\n"));
  const Ended ended = run_shell(both(file, folder.file("a"), "--hang-after 1"));
  INFO(ended.output);
  CHECK(has(ended, "rank 0 waited 1 s and gave up; next: lockstep compare " + file + " --reports " +
                       folder.file("a")));
}

TEST_CASE("ranks do not outlive a launcher that is killed while they start") {
  const Folder temporary;
  const Folder folder;
  const std::string file =
      folder.write("long.yaml", bare("    - recv: {elements: 4, src: 1 - rank}\n"));
  for (const char* delay : {"0.05", "0.2", "0.4"}) {
    run_shell("export TMPDIR=" + temporary.path() +
              "; " LOCKSTEP_PROGRAM " exec --hang-after 600 " + file + " & sleep " + delay +
              "; kill -KILL $!");
    INFO(delay);
    REQUIRE(run_shell("command -v pgrep").code == 0);
    const Ended left = run_shell("for turn in $(seq 100); do pgrep -f 'lockstep-ran[k] " + file +
                                 "' > /dev/null || exit 0; sleep 0.1; done; exit 1");
    CHECK(left.code == 0);
  }
}

TEST_CASE("a run that nohup started outlives its terminal") {
  const Folder folder;
  const std::string file =
      folder.write("hang.yaml", bare("    - recv: {elements: 4, src: 1 - rank}\n"));
  const auto hang_up = [&file](const std::string& before) {
    return run_shell(before + LOCKSTEP_PROGRAM " exec --hang-after 3 " + file +
                     " & lockstep=$!; sleep 1.5; kill -HUP $lockstep; wait $lockstep");
  };
  CHECK(hang_up("trap '' HUP; ").code == 1);  // as nohup does: it ends with its finding
  CHECK(hang_up("").code == 130);
}

TEST_CASE("weights that are large beside the batch are no difference of memory") {
  const Folder folder;
  for (const char* optimizer :
       {"optimizer: {AdamW: {lr: 0.001}}\ntrainer: {gradient_clip_val: 1.0, ",
        "optimizer: {Adam: {lr: 0.001}}\ntrainer: {precision: 64-true, "}) {
    const std::string file = folder.write(
        "wide.yaml",
        std::string("version: 1\ncluster: {preset: cpu}\n") + optimizer +
            "accelerator: cpu, devices: 2, strategy: ddp, max_steps: 3, limit_val_batches: 0, "
            "num_sanity_val_steps: 0}\ndata: {train: {samples: 24, batch_size: 4}}\n"
            "model: {input: [300], layers: [{Linear: [300, 500]}, ReLU, {Linear: [500, 10]}]}\n");
    const Ended ended = run_program("exec --skip-values " + file);
    INFO(ended.output);
    CHECK(ended.code == 0);
    CHECK(has(ended, "memory equal"));
  }
}

TEST_CASE("a folder for temporary files that is not there is reported with its remedy") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", bare("    - barrier\n"));
  const Ended ended = run_program("exec " + file, "2>&1", "", "export TMPDIR=/nonexistent; ");
  INFO(ended.output);
  CHECK(ended.code == 6);
  CHECK(has(ended, "set TMPDIR to a folder that can be written"));
  CHECK(run_program("exec " + file, "2>&1", "", "export TMPDIR=; ").code == 0);
}

TEST_CASE(
    "messages that Gloo posts at once end where one stream would hold them up, for real too") {
  const Folder folder;
  for (const char* statements :
       {"    - send: {tensor: \"full(9, rank * 1.0)\", dst: (rank + 1) % 3, async: true, as: w}\n"
        "    - recv: {elements: 9, src: (rank + 2) % 3, as: y}\n    - wait: w\n",
        "    - recv: {elements: 9, src: (rank + 2) % 3, async: true, as: y}\n"
        "    - send: {tensor: \"full(9, rank * 1.0)\", dst: (rank + 1) % 3}\n    - wait: y\n"}) {
    const std::string file = folder.write("ring.yaml", bare(statements, 3));
    const Ended judged = run_program("verify " + file);
    INFO(judged.output);
    CHECK(judged.code == 0);
    const Ended ran = run_program("exec --hang-after 5 " + file);
    INFO(ran.output);
    CHECK(ran.code == 0);
  }
}

TEST_CASE("a real run says what of the scenario it did not do, and what its tensors held") {
  const Folder folder;
  const std::string file = folder.write(
      "unspent.yaml",
      bare("    - host: 500 ms\n    - kernel: 300 ms\n    - all_reduce: {elements: 4, as: x}\n"));
  const Ended ended = run_program("exec " + file);
  INFO(ended.output);
  CHECK(has(ended, "`host` and `kernel` took no time"));
  CHECK(has(ended, "tensors of `elements` carried no data"));
  const std::string training = folder.write(
      "training.yaml",
      "version: 1\ncluster: {preset: cpu}\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp, "
      "max_steps: 2, limit_val_batches: 0, num_sanity_val_steps: 0}\n"
      "data: {train: {samples: 16, batch_size: 4}}\noptimizer: {SGD: {lr: 0.1}}\n"
      "model: {layers: [{Linear: [64, 64]}, ReLU, {Linear: [64, 8]}], input: [64]}\n");
  const Ended trained = run_program("exec " + training);
  INFO(trained.output);
  CHECK(trained.code == 0);
  CHECK(has(trained, "accounted, LibTorch's tensors held"));
  CHECK_FALSE(has(trained, "took no time"));
}

#endif

}  // namespace real_run_hygiene_test
