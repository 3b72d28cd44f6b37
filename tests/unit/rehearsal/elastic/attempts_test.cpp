// Jobs whose launcher starts ranks again: what each attempt begins with and what comes of all.
#include "rehearsal/elastic/attempts.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace attempts_test {

namespace {

// 64 samples on 4 ranks in batches of 4: 4 steps per epoch.
std::string job(const std::string& launcher, const std::string& faults,
                const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 2, start_time: 20 s}\n"
         "launcher: {torchrun: {nproc_per_node: 2, " +
         launcher +
         "}}\n"
         "model: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 2]}], input: [8]}\n"
         "data: {batch_size: 4, train: {samples: 64}}\n"
         "trainer: {accelerator: gpu, devices: 2, num_nodes: 2, strategy: ddp, max_epochs: 4, "
         "num_sanity_val_steps: 0, limit_val_batches: 0, callbacks: [{ModelCheckpoint: {dirpath: "
         "saved, save_last: true}}]}\n"
         "program: {main: [{fit: {ckpt_path: last}}]}\n" +
         "faults: " + faults + "\n" + more;
}

Rehearsal only_of(const std::string& text) { return std::move(rehearsed(text).front().result); }

std::vector<std::string> codes_of(const Rehearsal& rehearsal) {
  std::vector<std::string> codes;
  for (const Finding& finding : rehearsal.findings) {
    codes.push_back(finding.code);
  }
  return codes;
}

const Problem& problem_of(const Rehearsal& rehearsal) {
  const auto found = std::ranges::find_if(rehearsal.problems, &Problem::stops);
  REQUIRE(found != rehearsal.problems.end());
  return *found;
}

}  // namespace

TEST_CASE("a job is resumed from the newest checkpoint, and says what that took") {
  const Rehearsal ran =
      only_of(job("nnodes: 2, max_restarts: 3",
                  "[{lost_rank: {rank: 3, at: step 6}}, {exception: {rank: 0, at: step 9}}]"));
  CHECK(codes_of(ran).empty());
  REQUIRE(ran.results.elastic);
  const ElasticResults& elastic = *ran.results.elastic;
  REQUIRE(elastic.attempts.size() == 3);
  CHECK(elastic.restarts() == 2);
  CHECK(elastic.attempts[0].failure == "rank 3 was lost");
  CHECK(elastic.attempts[0].kept_step == 4);
  CHECK(elastic.attempts[1].failure == "rank 0 raised an exception");
  CHECK(elastic.attempts[1].first_step == 4);
  CHECK(elastic.attempts[1].kept_step == 8);
  CHECK(elastic.attempts[2].first_step == 8);
  CHECK(elastic.attempts[2].last_step == 16);
  CHECK(elastic.attempts[2].failure.empty());
  CHECK(ran.results.prediction.steps == 16);
  // 0.1 s to see it, 30 s for the node of the failure, 0.1 and 30 s for the other, 20 s to start.
  CHECK(elastic.attempts[0].down.whole() == 100_ms + 30_s + 100_ms + 30_s + 20_s);
  CHECK(elastic.attempts[1].began == elastic.attempts[0].ran + elastic.attempts[0].down.whole());
  CHECK(ran.results.prediction.total_time == elastic.wall());
  CHECK(elastic.useful() < elastic.wall());
  CHECK(elastic.useful() > Time{});
}

TEST_CASE("a failure before the first checkpoint costs time and is no finding") {
  const Rehearsal ran =
      only_of(job("nnodes: 2, max_restarts: 1", "[{lost_rank: {rank: 1, at: step 2}}]"));
  CHECK(codes_of(ran).empty());
  CHECK(ran.results.elastic->attempts[1].resumed_from.empty());
  CHECK(ran.results.elastic->attempts[0].useful == Time{});
}

TEST_CASE("a fault strikes once, and one of a time counts from the start of the job") {
  // The second would strike 70 s after the start of the job: no rank runs between 60.2 and 80.2 s.
  const Rehearsal ran =
      only_of(job("nnodes: 2, max_restarts: 2",
                  "[{lost_rank: {rank: 3, at: step 6}}, {lost_rank: {rank: 0, at: 70 s}}]"));
  CHECK(ran.results.elastic->restarts() == 1);
  CHECK(std::ranges::any_of(ran.problems, [](const Problem& problem) {
    return problem.message ==
           "`lost_rank` did not strike: no rank ran at that time, or its node took no part";
  }));
}

TEST_CASE("ranges of nodes that are upside down, or none, are errors with a remedy") {
  Rehearsal ran = only_of(job("nnodes: \"4:2\", max_restarts: 1", "[]"));
  CHECK(problem_of(ran).kind == Problem::Kind::invalid);
  CHECK(problem_of(ran).place.line == 3);
  CHECK(problem_of(ran).message ==
        "`nnodes: 4:2`: the minimum of 4 nodes is above the maximum of 2");
  CHECK(problem_of(ran).remedy == "write nnodes: \"2:4\"");
  for (const char* text : {"\"2:\"", "\":4\"", "\"two\"", "\"2:4:6\"", "0", "\"0:2\""}) {
    INFO(text);
    ran = only_of(job(std::string("nnodes: ") + text, "[]"));
    CHECK(problem_of(ran).message.ends_with("is neither a number of nodes nor MIN:MAX"));
    CHECK(problem_of(ran).remedy == "write nnodes: 4, or nnodes: \"2:4\"");
  }
  ran = only_of(job("nnodes: 2, max_restarts: -1", "[]"));
  CHECK(problem_of(ran).message == "`max_restarts` is -1");
}

TEST_CASE("resuming is modelled from Lightning 2.5 on") {
  const Rehearsal ran =
      only_of(job("nnodes: 2, max_restarts: 1", "[]", "versions: {lightning: \"2.4\"}\n"));
  CHECK(problem_of(ran).kind == Problem::Kind::unsupported);
  CHECK(problem_of(ran).message == "`ckpt_path` is modelled from Lightning 2.5 on");
}

TEST_CASE("num_nodes of the environment needs torchrun") {
  const Rehearsal ran = only_of(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\n"
      "trainer: {devices: 8, num_nodes: GROUP_WORLD_SIZE, max_epochs: 1}\n");
  CHECK(problem_of(ran).message == "GROUP_WORLD_SIZE is not set: torchrun sets it");
}

TEST_CASE("a failure rate without restarts has no effect, and says so") {
  const Rehearsal ran = only_of(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1, mtbf: 2 y}\n"
      "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, limit_val_batches: 0}\n"
      "data: {train: {samples: 16}}\n");
  CHECK(std::ranges::any_of(ran.problems, [](const Problem& problem) {
    return problem.message == "`mtbf` has no effect here: nothing starts ranks again";
  }));
}

// Nodes that come later start the others again.
TEST_CASE("start_time has an effect where nodes may come later") {
  for (const char* range : {"2:5", "1:3"}) {
    const Rehearsal ran = only_of(fmt::format(
        "version: 1\ncluster: {{preset: dgx-a100, nodes: 5, start_time: 20 s}}\n"
        "launcher: {{torchrun: {{nnodes: \"{}\", nproc_per_node: 8}}}}\n"
        "trainer: {{accelerator: gpu, devices: 8, num_nodes: 2, max_epochs: 1, limit_val_batches: "
        "0}}\ndata: {{train: {{samples: 64}}}}\n",
        range));
    CHECK(std::ranges::none_of(ran.problems, [](const Problem& problem) {
      return problem.message.find("`start_time` has no effect") != std::string::npos;
    }));
  }
}

// 10 steps per epoch; resumed at step 4 (4 batches used, 6 left) and at step 12 (2 used, 8 left): 4
// and 2 batches of each of 4 ranks, 4 samples each.
TEST_CASE("each epoch that was resumed within is reported") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "launcher: {torchrun: {nproc_per_node: 4, max_restarts: 3}}\n"
      "model: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 2]}], input: [8]}\n"
      "data: {batch_size: 4, train: {samples: 160}}\n"
      "trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_epochs: 2, num_sanity_val_steps: "
      "0, limit_val_batches: 0, callbacks: [{ModelCheckpoint: {dirpath: saved, save_last: true, "
      "every_n_train_steps: 4}}]}\n"
      "program: {main: [{fit: {ckpt_path: last}}]}\n"
      "faults: [{lost_rank: {rank: 1, at: step 6}}, {lost_rank: {rank: 2, at: step 14}}]\n";
  const Rehearsal ran = only_of(text);
  CHECK(codes_of(ran) == std::vector<std::string>{"LS304", "LS304"});
  REQUIRE(ran.results.elastic);
  const std::vector<ResumedEpoch>& epochs = ran.results.elastic->resumed_epochs;
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0].epoch == 0);
  CHECK(epochs[0].repeated == 64);
  CHECK(epochs[0].missed == 64);
  CHECK(epochs[1].epoch == 1);
  CHECK(epochs[1].repeated == 32);
  CHECK(ran.results.samples_repeated == 96);
}

// 4 samples per step: 20 steps reach 80 of 320. Resumed at step 10, steps 10 to 19 begin the order
// again, with the 40 samples of the first ten.
TEST_CASE("samples that max_steps leaves out are not lost by a restart") {
  const Rehearsal ran = only_of(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "launcher: {torchrun: {nproc_per_node: 2, max_restarts: 1}}\n"
      "model: {layers: [{Linear: [1, 1]}], input: [1]}\n"
      "data: {batch_size: 2, train: {samples: 320}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2, max_steps: 20, "
      "num_sanity_val_steps: 0, limit_val_batches: 0, callbacks: [{ModelCheckpoint: {dirpath: "
      "saved, save_last: true, every_n_train_steps: 5}}]}\n"
      "program: {main: [{fit: {ckpt_path: last}}]}\n"
      "faults: [{lost_rank: {rank: 1, at: step 10}}]\n");
  REQUIRE(codes_of(ran) == std::vector<std::string>{"LS304"});
  CHECK(ran.findings.front().title ==
        "epoch 0 was resumed within: of the 80 samples that it reaches 40 are trained on again and "
        "40 never");
  REQUIRE(ran.results.elastic->resumed_epochs.size() == 1);
  CHECK(ran.results.elastic->resumed_epochs.front().missed == 280);
}

// The second failure comes before the first step: it loses nothing, and hides nothing.
TEST_CASE("a training that began anew is reported, whatever fails later") {
  const std::string job_text =
      job("nnodes: 2, max_restarts: 3",
          "[{lost_rank: {rank: 3, at: step 6}}, {exception: {rank: 0, hook: setup, at: 10 s}}]");
  std::string anew = job_text;
  anew.replace(anew.find("{ckpt_path: last}"), 17, "{}");
  const Rehearsal ran = only_of(anew);
  CHECK(codes_of(ran) == std::vector<std::string>{"LS502"});
  REQUIRE(!ran.findings.empty());
  CHECK(ran.findings.front().title.find("6 optimizer steps are lost") != std::string::npos);
}

TEST_CASE("servers begin anew after a restart, whatever their workers load") {
  const auto served = [](const std::string& lost, const std::string& fit) {
    return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nprocess_group: {backend: gloo}\n"
           "launcher: {torchrun: {nproc_per_node: 3, max_restarts: 1}}\n"
           "model: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 2]}], input: [8]}\n"
           "data: {batch_size: 4, train: {samples: 64}}\n"
           "trainer: {accelerator: gpu, devices: 3, strategy: parameter_server, max_epochs: 2, "
           "num_sanity_val_steps: 0, limit_val_batches: 0, callbacks: [{ModelCheckpoint: {dirpath: "
           "saved, save_last: true}}]}\n"
           "program: {main: [" +
           fit + "]}\nfaults: [{lost_rank: {rank: " + lost + ", at: step 10}}]\n";
  };
  for (const char* lost : {"1", "2"}) {  // a worker, the server
    INFO(lost);
    const Rehearsal anew = only_of(served(lost, "fit"));
    CHECK(codes_of(anew) == std::vector<std::string>{"LS502"});
    const Rehearsal resumed = only_of(served(lost, "{fit: {ckpt_path: last}}"));
    CHECK(codes_of(resumed) == std::vector<std::string>{"LS502"});
    REQUIRE(resumed.results.elastic);
    const ElasticResults& elastic = *resumed.results.elastic;
    REQUIRE(elastic.attempts.size() == 2);
    CHECK(elastic.attempts[1].first_step == 8);
    CHECK(elastic.attempts[1].servers_begin_anew);
    CHECK(elastic.attempts[0].kept_step == 0);
    CHECK(resumed.findings.front().why.text.find("rank 2 holds the weights") == 0);
  }
}

}  // namespace attempts_test
