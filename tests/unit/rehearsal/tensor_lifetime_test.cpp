// When the memory of a tensor goes back to the allocator while somebody still uses it, and work
// that nobody waits for.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace tensor_lifetime_test {

namespace {

using Codes = std::vector<std::string>;

struct Told {
  Codes codes;
  std::vector<int> lines;
  std::vector<Level> levels;
};

Told told(const std::string& text) {
  const Rehearsal ran = std::move(rehearsed(text).front().result);
  Told all;
  for (const Finding& finding : ran.findings) {
    const Site* site = ran.sites.find(finding.site());
    all.codes.push_back(finding.code);
    all.levels.push_back(finding.level);
    all.lines.push_back(site == nullptr ? 0 : site->line);
  }
  return all;
}

Codes codes(const std::string& statements, const std::string& more = "") {
  return told(bare_text(2, statements, more)).codes;
}

const std::string x_on_side =
    "    - let: {x: \"full(1024, 1.0)\"}\n"
    "    - wait_stream: {stream: compute, on: side}\n"
    "    - kernel: {time: 2 ms, stream: side, reads: [x]}\n";
const std::string side_is_done = "    - wait_stream: {stream: side, on: compute}\n";
const std::string gloo = "process_group: {backend: gloo}\n";

std::string torch(const std::string& version, bool avoids = false) {
  return "versions: {torch: \"" + version + "\"}\n" +
         (avoids ? "env: {TORCH_NCCL_AVOID_RECORD_STREAMS: \"1\"}\n" : "");
}

}  // namespace

TEST_CASE("the last name of a tensor that another stream uses gives its memory away") {
  for (const std::string drop : {"    - let: {x: \"full(1024, 2.0)\"}\n", "    - del: x\n"}) {
    INFO(drop);
    const Told found = told(bare_text(2, x_on_side + drop));
    REQUIRE(found.codes == Codes{"LS202"});
    CHECK(found.lines == std::vector<int>{8});
    CHECK(codes(x_on_side + side_is_done + drop).empty());
  }
  CHECK(codes(x_on_side + "    - let: {y: x}\n    - del: x\n").empty());
  CHECK(codes(x_on_side + "    - let: {y: x}\n    - del: [x, y]\n") == Codes{"LS202"});
  CHECK(codes(x_on_side + "    - synchronize: side\n    - del: x\n").empty());
  CHECK(codes(x_on_side).empty());  // the process ends with the script
}

TEST_CASE("a loop gives away what its turn before has bound") {
  const std::string body =
      "    - repeat: 3\n      do:\n"
      "        - let: {x: \"full(1024, 1.0)\"}\n"
      "        - wait_stream: {stream: compute, on: side}\n"
      "        - kernel: {time: 2 ms, stream: side, reads: [x]}\n";
  CHECK(codes(body) == Codes{"LS202"});
  CHECK(codes(body + "        - wait_stream: {stream: side, on: compute}\n").empty());
}

TEST_CASE("memory belongs to the stream that a copy was made on") {
  const std::string copied =
      "    - let: {x: \"full(1024, 1.0)\"}\n"
      "    - wait_stream: {stream: compute, on: load}\n"
      "    - copy: {tensor: x, to: device, stream: load, non_blocking: true, as: y}\n"
      "    - wait_stream: {stream: load, on: compute}\n"
      "    - kernel: {time: 2 ms, reads: [y]}\n";
  CHECK(codes(copied + "    - del: y\n") == Codes{"LS202"});
  CHECK(codes(copied + "    - wait_stream: {stream: compute, on: load}\n    - del: y\n").empty());
}

TEST_CASE("the end of a hook drops what only its names hold") {
  const std::string head =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
      "data: {train: {samples: 16, batch_size: 4}}\nprogram:\n";
  const std::string used =
      "    - let: {NAME: \"full(1024, 1.0)\"}\n"
      "    - wait_stream: {stream: compute, on: side}\n"
      "    - kernel: {time: 2 ms, stream: side, reads: [NAME]}\n";
  const auto named = [&](std::string name) {
    std::string text = used;
    for (size_t at = text.find("NAME"); at != std::string::npos; at = text.find("NAME")) {
      text.replace(at, 4, name);
    }
    return text;
  };
  for (const std::string hook : {"on_train_batch_end", "training_step"}) {
    INFO(hook);
    const Told found = told(head + "  " + hook + ":\n" + named("x"));
    REQUIRE(found.codes == Codes{"LS202"});
    CHECK(found.lines == std::vector<int>{6});
    CHECK(told(head + "  " + hook + ":\n" + named("x") + side_is_done).codes.empty());
  }
  CHECK(told(head + "  on_fit_start:\n" + named("self.x")).codes.empty());
}

TEST_CASE("c10d keeps the tensors of its calls, and a missing wait is reported as such") {
  const std::string dropped =
      "    - let: {x: \"full(1024, 1.0)\"}\n"
      "    - all_reduce: {tensor: x, async: true}\n"
      "    - del: x\n";
  for (const std::string version : {"2.1.0", "2.6.0", "2.7.0", "2.11.0"}) {
    INFO(version);
    CHECK(codes(dropped, torch(version)) == Codes{"LS403"});
  }
  CHECK(codes(dropped, gloo) == Codes{"LS403"});
  CHECK(codes(dropped, torch("2.7.0", true)) == Codes{"LS403"});
  CHECK(codes(dropped, torch("2.5.0", true)) == Codes{"LS202", "LS403"});
  const std::string waited =
      "    - let: {x: \"full(1024, 1.0)\"}\n"
      "    - all_reduce: {tensor: x, async: true}\n"
      "    - wait: x\n"
      "    - del: x\n";
  CHECK(codes(waited, torch("2.5.0", true)).empty());
  CHECK(codes(waited).empty());
}

TEST_CASE("a call on another stream keeps its tensors up to torch 2.1") {
  const std::string called =
      "    - let: {x: \"full(1024, 1.0)\"}\n"
      "    - wait_stream: {stream: compute, on: side}\n"
      "    - all_reduce: {tensor: x, stream: side}\n";
  CHECK(codes(called + "    - del: x\n", torch("2.1.0")).empty());
  CHECK(codes(called + "    - del: x\n", torch("2.2.0")) == Codes{"LS202"});
  CHECK(codes(called + "    - del: x\n") == Codes{"LS202"});
  CHECK(codes(called + side_is_done + "    - del: x\n").empty());
}

TEST_CASE("work that is never waited for is LS403 with its place") {
  for (const std::string call :
       {"all_reduce: {elements: 8, async: true, as: w}",
        "broadcast: {elements: 8, async: true, as: w}",
        "all_gather: {elements: 8, async: true, as: w}",
        "reduce_scatter: {elements: 8, async: true, as: w}", "barrier: {async: true, as: w}",
        "batch_isend_irecv: {statements: [{send: {elements: 8, dst: 1 - rank}}, {recv: {elements: "
        "8, src: 1 - rank, as: r}}], async: true, as: w}",
        "grouped: {statements: [{all_reduce: {elements: 8}}, {broadcast: {elements: 8}}], async: "
        "true, as: w}"}) {
    for (const std::string& backend : {std::string(), gloo}) {
      INFO(call << " " << backend);
      const bool grouped = call.starts_with("grouped");
      if (grouped && !backend.empty()) {
        continue;
      }
      const Told found = told(bare_text(2, "    - " + call + "\n    - host: 1 ms\n", backend));
      REQUIRE(found.codes == Codes{"LS403"});
      CHECK(found.levels == std::vector<Level>{Level::warning});
      CHECK(found.lines == std::vector<int>{backend.empty() ? 5 : 6});
      CHECK(codes("    - " + call + "\n    - host: 1 ms\n    - wait: w\n", backend).empty());
    }
  }
}

TEST_CASE("messages that are never waited for are LS403 too") {
  const auto exchange = [](const std::string& wait) {
    return "    - if: rank == 0\n"
           "      then: [{send: {elements: 8, dst: 1, async: true, as: w}}" +
           wait +
           "]\n"
           "      else: [{recv: {elements: 8, src: 0, async: true, as: w}}" +
           wait + "]\n";
  };
  CHECK(codes(exchange("")) == Codes{"LS403", "LS403"});
  CHECK(codes(exchange(""), gloo) == Codes{"LS403", "LS403"});
  CHECK(codes(exchange(", {wait: w}")).empty());
  CHECK(codes(exchange(", {wait: w}"), gloo).empty());
  CHECK(codes("    - {if: rank == 0, then: [{send: {elements: 8, dst: 1, async: true}}], else: "
              "[{recv: {elements: 8, src: 0}}]}\n") == Codes{"LS403"});
}

TEST_CASE("a device that is synchronised has waited for NCCL's work, not for Gloo's") {
  const std::string program =
      "    - all_reduce: {elements: 8, async: true, as: w}\n    - synchronize\n";
  CHECK(codes(program).empty());
  CHECK(codes(program, gloo) == Codes{"LS403"});
}

TEST_CASE("a use before the wait is reported once, and not as a missing wait too") {
  CHECK(codes("    - let: {x: \"full(4, 1.0)\"}\n"
              "    - all_reduce: {tensor: x, async: true, as: total}\n"
              "    - item: sum(total)\n") == Codes{"LS201"});
}

TEST_CASE("an asynchronous barrier can be waited for") {
  const auto program = [](const std::string& meeting) {
    return "    - if: rank == 0\n"
           "      then: [" +
           meeting + ", {send: {elements: 8, dst: 1}}, {host: 1 ms}" +
           (meeting == "barrier" ? "" : ", {wait: b}") +
           "]\n"
           "      else: [{recv: {elements: 8, src: 0}}, barrier]\n";
  };
  CHECK(codes(program("{barrier: {async: true, as: b}}"), gloo).empty());
  CHECK_FALSE(codes(program("barrier"), gloo).empty());
  CHECK(codes("    - new_group: {ranks: all, as: g}\n"
              "    - barrier: {group: g, async: true, as: b}\n    - wait: b\n")
            .empty());
}

TEST_CASE("names that are deleted are gone") {
  CHECK_THROWS(rehearsed(bare_text(1, "    - let: {x: 1}\n    - del: x\n    - assert: x == 1\n")));
  CHECK_THROWS(rehearsed(bare_text(1, "    - del: x\n")));
  CHECK(codes("    - let: {x: 1}\n    - {if: rank == 0, then: [{del: x}]}\n"
              "    - {if: rank == 1, then: [{assert: x == 1}]}\n")
            .empty());
  CHECK(codes("    - let: {x: 1}\n    - {if: rank == 0, then: [{del: x}]}\n"
              "    - assert: x == 1\n") == Codes{""});
}

}  // namespace tensor_lifetime_test
