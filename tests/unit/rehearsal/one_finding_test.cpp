// One defect gives one finding, with the code that its definition asks for.
#include <algorithm>
#include <catch2/catch.hpp>

#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace one_finding_test {

namespace {

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

std::vector<std::string> codes_of(const Rehearsal& ran) {
  std::vector<std::string> codes;
  for (const Finding& finding : ran.findings) {
    codes.push_back(finding.code);
  }
  return codes;
}

std::vector<std::string> codes_of_bare(int ranks, const std::string& statements) {
  return codes_of(only(bare_text(ranks, statements)));
}

using Codes = std::vector<std::string>;

const std::string ddp_text = R"yaml(
version: 1
versions: {lightning: "2.4"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
)yaml";

}  // namespace

TEST_CASE("two branches that exchange equal-shaped calls of two tensors are LS103") {
  const std::string named = R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(4, 2.0)"}
    - if: rank == 0
      then: [{all_reduce: a}, {all_reduce: b}]
      else: [{all_reduce: b}, {all_reduce: a}]
)yaml";
  CHECK(codes_of_bare(2, named) == Codes{"LS103"});
  CHECK(codes_of_bare(2, R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(4, 2.0)"}
    - if: rank == 0
      then: [{all_reduce: a}, {all_reduce: b}]
      else: [{all_reduce: a}, {all_reduce: b}]
)yaml")
            .empty());
}

TEST_CASE("a rank that waits in the first of two exchanged calls has not left out the second") {
  // `item` lets the host wait, so that neither rank comes to its second call.
  CHECK(codes_of_bare(2, R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(8, 2.0)"}
    - if: rank == 0
      then: [{all_reduce: a}, {item: sum(a)}, {all_gather: {tensor: b, as: c}}]
      else: [{all_gather: {tensor: b, as: c}}, {item: sum(c)}, {all_reduce: a}]
)yaml") == Codes{"LS103"});
  CHECK(codes_of_bare(2, R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(8, 2.0)"}
    - if: rank == 0
      then: [{all_gather: {tensor: b, as: c}}, {item: sum(c)}, {all_reduce: a}]
      else: [{all_reduce: a}]
)yaml") == Codes{"LS101"});
}

TEST_CASE("a barrier exchanged with a reduction is LS103 also where NCCL reduces for a barrier") {
  const Rehearsal ran = only(bare_text(2, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - if: rank == 0
      then: [barrier, {all_reduce: x}]
      else: [{all_reduce: x}, barrier]
)yaml"));
  REQUIRE(codes_of(ran) == Codes{"LS103"});
  CHECK(std::any_of(ran.findings[0].did.begin(), ran.findings[0].did.end(),
                    [](const RankAction& action) { return action.operation == "barrier"; }));
}

TEST_CASE("another order inside of a grouped call is LS103") {
  CHECK(codes_of_bare(2, R"yaml(
    - let: {a: "full(4, 1.0)", b: "full(6, 2.0)"}
    - if: rank == 0
      then: [{grouped: [{all_reduce: a}, {all_gather: {tensor: b, as: c}}]}]
      else: [{grouped: [{all_gather: {tensor: b, as: c}}, {all_reduce: a}]}]
)yaml") == Codes{"LS103"});
}

TEST_CASE("groups made in a different order are LS105, reported by their members") {
  const Rehearsal ran = only(bare_text(4, R"yaml(
    - if: rank == 0
      then: [{new_group: {ranks: [0, 1], as: p}}, {new_group: {ranks: [2, 3], as: q}}]
      else: [{new_group: {ranks: [2, 3], as: q}}, {new_group: {ranks: [0, 1], as: p}}]
)yaml"));
  REQUIRE(codes_of(ran) == Codes{"LS105"});
  REQUIRE(ran.findings[0].did.size() == 2);
  for (const RankAction& action : ran.findings[0].did) {
    CHECK(action.operation.starts_with("new_group of ranks "));
  }
  for (const Way& way : ran.findings[0].why.ways) {
    CHECK(way.value.find("list") == std::string::npos);
  }
  const Rehearsal lists =
      only(bare_text(3, "    - new_group: {ranks: [0, 1 + (rank == 2)], as: p}\n"));
  REQUIRE(codes_of(lists) == Codes{"LS105"});
  REQUIRE(lists.findings[0].why.ways.size() == 2);
  CHECK(lists.findings[0].why.text == "the members differ");
  CHECK(lists.findings[0].why.ways[0].value == "ranks 0, 1");
  CHECK(lists.findings[0].why.ways[1].value == "ranks 0, 2");
}

TEST_CASE("sizes of a message that do not fit are one LS104") {
  CHECK(codes_of_bare(2, R"yaml(
    - let: {x: "full(4, 1.0)", y: "full(6, 1.0)"}
    - if: rank == 0
      then: [{send: {tensor: x, dst: 1}}]
      else: [{recv: {tensor: y, src: 0}}]
)yaml") == Codes{"LS104"});
}

std::string follows_over(const std::string& backend, const std::string& statements) {
  const Rehearsal ran =
      only(bare_text(2, statements, "process_group: {backend: " + backend + "}\n"));
  REQUIRE(codes_of(ran) == Codes{"LS104"});
  std::string all;
  for (const std::string& line : ran.findings[0].follows) {
    all += line + "\n";
  }
  return all;
}

// As recorded with torch 2.11 over Gloo: who gets more bytes than it asked for ends by SIGABRT, and
// nobody waits half an hour.
TEST_CASE("sizes that differ end a process of Gloo at once, and let NCCL's wait") {
  const std::string call = "    - all_reduce: {elements: 4 + 2 * rank}\n";
  const std::string gloo = follows_over("gloo", call);
  CHECK(gloo.find("process of rank 0 (SIGABRT) within milliseconds") != std::string::npos);
  CHECK(gloo.find("rank 1 then raises") != std::string::npos);
  CHECK(gloo.find("30 min") == std::string::npos);
  CHECK(gloo.find("GPU") == std::string::npos);
  const std::string nccl = follows_over("nccl", call);
  CHECK(nccl.find("SIGABRT") == std::string::npos);
  CHECK(nccl.find("10 min") != std::string::npos);
}

TEST_CASE("a message over Gloo that is too long ends its receiver, and a short one is taken") {
  const auto message = [](const char* sent, const char* received) {
    return std::string("    - if: rank == 0\n      then: [{send: {elements: ") + sent +
           ", dst: 1}}]\n      else: [{recv: {elements: " + received + ", src: 0}}]\n";
  };
  const std::string longer = follows_over("gloo", message("6", "4"));
  CHECK(longer.find("process of rank 1 (SIGABRT)") != std::string::npos);
  CHECK(longer.find("min") == std::string::npos);
  const std::string shorter = follows_over("gloo", message("4", "6"));
  CHECK(shorter.find("Gloo notices nothing") != std::string::npos);
  CHECK(shorter.find("min") == std::string::npos);
}

TEST_CASE("a wrong split of an all_to_all is one LS104") {
  CHECK(codes_of_bare(4, R"yaml(
    - let: {x: "full(8, 1.0)"}
    - all_to_all:
        tensor: x
        input_split_sizes: [2 - (rank == 1), 2 + (rank == 1), 2, 2]
        output_split_sizes: [2, 2, 2, 2]
        as: y
    - item: sum(y)
)yaml") == Codes{"LS104"});
}

TEST_CASE("one more validation batch with a log on_step is LS102, whatever follows it") {
  for (const char* on_epoch : {"true", "false"}) {
    INFO("on_epoch " << on_epoch);
    const Rehearsal ran = only(R"yaml(
version: 1
versions: {lightning: "2.4"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_train_batches: 1}
data: {batch_size: 4, train: {samples: 32}, val: {batches: 3 + (rank == 0)}}
program:
  validation_step:
    - log: {name: val_loss, value: loss, sync_dist: true, on_step: true, on_epoch: )yaml" +
                               std::string(on_epoch) + "}\n");
    CHECK(codes_of(ran) == Codes{"LS102"});
  }
}

TEST_CASE("data of asynchronous work that writes it is not to be read before the wait") {
  for (const char* use : {"let: {y: x + 1}", "kernel: {time: 1 ms, reads: [x]}",
                          "kernel: {time: 1 ms, writes: [x]}", "item: sum(x)"}) {
    INFO(use);
    const std::string begin = R"yaml(
    - let: {x: "full(4, 1.0)"}
    - all_reduce: {tensor: x, async: true, as: work}
)yaml";
    const std::string statement = "    - " + std::string(use) + "\n";
    CHECK(codes_of_bare(2, begin + statement + "    - wait: work\n") == Codes{"LS201"});
    CHECK(codes_of_bare(2, begin + "    - wait: work\n" + statement).empty());
  }
}

TEST_CASE("data that asynchronous work only reads may be read meanwhile, and not be written") {
  const std::string begin = R"yaml(
    - let: {x: "full(4, 1.0)"}
    - all_gather: {tensor: x, async: true, as: all}
)yaml";
  const std::string wait = "    - wait: all\n";
  CHECK(codes_of_bare(2, begin + "    - kernel: {time: 1 ms, reads: [x]}\n" + wait).empty());
  CHECK(codes_of_bare(2, begin + "    - kernel: {time: 1 ms, writes: [x]}\n" + wait) ==
        Codes{"LS201"});
}

TEST_CASE("one missing wait is one finding, however often the data is used") {
  CHECK(codes_of_bare(2, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - all_reduce: {tensor: x, async: true, as: work}
    - kernel: {time: 1 ms, reads: [x]}
    - kernel: {time: 1 ms, reads: [x]}
    - item: sum(work)
)yaml") == Codes{"LS201"});
}

TEST_CASE("a non_blocking copy to the host is not to be read before something waits for it") {
  const std::string begin = R"yaml(
    - let: {x: "full(4, 1.0)"}
    - copy: {tensor: x, to: cpu, non_blocking: true, as: h}
)yaml";
  CHECK(codes_of_bare(1, begin + "    - let: {y: sum(h)}\n") == Codes{"LS201"});
  // `.item()` of a tensor on the host waits for no device.
  CHECK(codes_of_bare(1, begin + "    - item: sum(h)\n") == Codes{"LS201"});
  CHECK(codes_of_bare(1, begin + "    - synchronize\n    - let: {y: sum(h)}\n").empty());
  CHECK(codes_of_bare(1, begin + "    - synchronize: compute\n    - item: sum(h)\n").empty());
  CHECK(codes_of_bare(1, begin + "    - item: sum(x)\n    - let: {y: sum(h)}\n").empty());
  CHECK(codes_of_bare(1, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - copy: {tensor: x, to: cpu, non_blocking: true, stream: side, as: h}
    - wait_stream: {stream: side, on: compute}
    - synchronize: compute
    - let: {y: sum(h)}
)yaml")
            .empty());
  CHECK(codes_of_bare(1, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - copy: {tensor: x, to: cpu, non_blocking: true, stream: side, as: h}
    - synchronize: compute
    - let: {y: sum(h)}
)yaml") == Codes{"LS201"});
  CHECK(codes_of_bare(1, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - copy: {tensor: x, to: cpu, as: h}
    - let: {y: sum(h)}
)yaml")
            .empty());
}

TEST_CASE("streams are reported by the names that the scenario gives them") {
  const Rehearsal ran = only(bare_text(2, R"yaml(
    - let: {x: "full(4, 1.0)"}
    - kernel: {time: 1 ms, stream: side, reads: [x]}
    - kernel: {time: 1 ms, writes: [x]}
)yaml"));
  REQUIRE(codes_of(ran) == Codes{"LS202"});
  CHECK(ran.findings[0].title.find("stream side") != std::string::npos);
}

TEST_CASE("replicas that drifted apart are one LS305 and no LS306 beside it") {
  const Rehearsal ran = only(ddp_text + R"yaml(
data: {train: {samples: 32, batch_size: 4}}
program:
  training_step:
    - forward: {through: module}
)yaml");
  REQUIRE(codes_of(ran) == Codes{"LS305"});
  CHECK(ran.findings[0].follows.back() ==
        "all differ from what one device computes from the same samples");
}

TEST_CASE("a window of accumulation that the epoch cuts short steps as on one device") {
  // 6 batches per rank in windows of 4: the last step sees 2 of them, divided by 4 everywhere.
  const Rehearsal ran = only(R"yaml(
version: 1
versions: {lightning: "2.4"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0, accumulate_grad_batches: 4}
data: {train: {samples: 48, batch_size: 4}}
expect: [steps == 2]
)yaml");
  CHECK(codes_of(ran).empty());
  CHECK(ran.expectations[0].met);
  CHECK(std::count(ran.coverage.looked_at.begin(), ran.coverage.looked_at.end(),
                   "the same samples on one device") == 1);
}

TEST_CASE("memory that runs out is reported with its statement, or with the model") {
  const Rehearsal ran = only(R"yaml(version: 1
cluster: {ranks: 2, gpu: {memory: 1 MiB}, network: {bandwidth: 1 GB/s, latency: 1 us}}
program:
  main:
    - let: {x: "full(100_000, 1.0)"}
    - let: {y: "full(200_000, 1.0)"}
)yaml");
  REQUIRE(codes_of(ran) == Codes{"LS401"});
  const Site* site = ran.sites.find(ran.findings[0].site());
  REQUIRE(site != nullptr);
  CHECK(site->line == 6);
  // 800,000 bytes beside 400,000.
  CHECK(ran.findings[0].why.text == "out of memory: 781.2 KiB asked, 390.6 KiB of 1.0 MiB in use");

  const Rehearsal model = only(ddp_text + R"yaml(
model: {layers: [{Linear: [200000, 200000]}], input: [200000]}
data: {train: {samples: 32, batch_size: 4}}
)yaml");
  REQUIRE(codes_of(model) == Codes{"LS401"});
  const Site* place = model.sites.find(model.findings[0].site());
  REQUIRE(place != nullptr);
  CHECK(place->description == "model");
}

TEST_CASE("a run that was stopped says nothing about findings") {
  Collected collected = collect(source_of_text(bare_text(1, R"yaml(
    - repeat: 1_000_000_000
      do: [{let: {x: 1}}]
)yaml")));
  RehearseRequest request;
  // Whichever limit comes first: this much time, or ten million statements.
  request.deadline = std::make_shared<const Deadline>(0.05);
  rehearse_all(collected.jobs, request, Judges::all, 1);
  const Rehearsal& ran = collected.jobs.front().result;
  REQUIRE(!ran.undecided.empty());
  const std::string text = render_verify(ran, {});
  CHECK(text.find("findings") == std::string::npos);
  CHECK(text.find("all schedules") == std::string::npos);
  CHECK(text.find("undecided: ") != std::string::npos);
}

TEST_CASE("threads find what does not fit, and say what they cannot judge") {
  if (!has_thread_world()) {
    return;
  }
  RehearseRequest request;
  request.world = World::threads;
  Collected memory = collect(source_of_text(R"yaml(version: 1
cluster: {ranks: 2, gpu: {memory: 1 MiB}, network: {bandwidth: 1 GB/s, latency: 1 us}}
process_group: {backend: gloo}
program:
  main:
    - let: {x: "full(400_000, 1.0)"}
)yaml"));
  rehearse_all(memory.jobs, request, Judges::words, 1);
  CHECK(codes_of(memory.jobs.front().result) == Codes{"LS401"});

  Collected choice = collect(source_of_text(bare_text(2, R"yaml(
    - if: unknown
      then: [barrier]
)yaml",
                                                      "expect: [finding LS109, no_findings]\n")));
  rehearse_all(choice.jobs, request, Judges::words, 1);
  const Rehearsal& ran = choice.jobs.front().result;
  for (const Judged& one : ran.expectations) {
    INFO(one.text);
    CHECK(!one.judged);
    CHECK(one.actual.starts_with("not judged in this world"));
  }
  CHECK(render_verify(ran, {}).find("not judged in this world: LS109") != std::string::npos);
}

TEST_CASE("who started the processes ends them once one of them has failed") {
  const auto told = [](const std::string& version, int32_t rank, const std::string& more = "") {
    const Rehearsal ran =
        only("version: 1\nversions: {lightning: \"" + version +
             "\"}\ncluster: {preset: dgx-a100, nodes: 1}\n" + more +
             "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
             "num_sanity_val_steps: 0, limit_val_batches: 0}\n"
             "program: {training_step: [{if: batch_idx == 1 and rank == " +
             std::to_string(rank) + ", then: [{raise: corrupt}]}]}\n");
    REQUIRE(ran.findings.size() == 1);
    return ran.findings.front().follows.back();
  };
  const std::string watchdog = "waiting GPUs show 100 % use and no error; the watchdog";
  CHECK(told("2.6", 1) ==
        "Lightning's launcher sees within 5 s that rank 1 has failed, and ends all processes of "
        "that node");
  CHECK(told("2.6", 0).starts_with(watchdog));  // it is the launcher that has failed
  CHECK(told("2.0", 1).starts_with(watchdog));
  CHECK(told("2.6", 0, "launcher: {torchrun: {nproc_per_node: 2}}\n") ==
        "torchrun sees that rank 0 has failed, and ends all processes of that node");
}

}  // namespace one_finding_test
