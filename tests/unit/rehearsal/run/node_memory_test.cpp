// Host memory, which the ranks of a node share.
#include "rehearsal/run/node_memory.hpp"

#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace node_memory_test {

namespace {

// Rank r keeps (r + 1) copies of 1024 fp32 numbers, 4 KiB each, in host memory.
Rehearsal copies(const std::string& memory) {
  return advised("version: 1\ncluster: {preset: dgx-a100, nodes: 2, gpus: 2, ranks: 4, memory: " +
                 memory + R"yaml(}
program:
  main:
    - let: {x: "full(1024, 1.0)", kept: "[]"}
    - repeat: rank + 1
      do:
        - copy: {tensor: x, to: cpu, as: h}
        - append: {list: kept, value: h}
)yaml");
}

Rehearsal offloaded(const std::string& cluster) {
  return advised("version: 1\ncluster: {preset: dgx-a100, nodes: 1" + cluster + R"yaml(}
model: {input: [512], layers: [{Linear: [512, 512]}], loss: MSELoss}
optimizer: {DeepSpeedCPUAdam: {weight_decay: 0.01}}
data: {train: {samples: 64, batch_size: 4}}
trainer: {accelerator: gpu, devices: 4, strategy: deepspeed_stage_2_offload, max_steps: 3}
verify: {numerics: false}
)yaml");
}

const Finding* lack(const Rehearsal& rehearsal) {
  const auto found = std::ranges::find(rehearsal.findings, "LS401", &Finding::code);
  return found == rehearsal.findings.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("the ranks of a node need their host memory together") {
  // Ranks 0 and 1 keep 1 + 2 copies, ranks 2 and 3 on the other node 3 + 4.
  const Rehearsal ran = copies("28 KiB");
  const std::vector<NodeMemory> nodes = node_memory_of(ran.run);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].needed == Bytes(3 * 4096));
  CHECK(nodes[1].needed == Bytes(7 * 4096));
  CHECK(nodes[1].ranks == RankSet{2, 3});
  CHECK(nodes[1].capacity == Bytes(28 * 1024));
  CHECK(fullest(nodes) == &nodes[1]);
  CHECK(lack(ran) == nullptr);
}

TEST_CASE("a node whose ranks need more host memory than it has is LS401") {
  const Rehearsal ran = copies("27 KiB");
  const Finding* finding = lack(ran);
  REQUIRE(finding != nullptr);
  CHECK(finding->level == Level::error);
  CHECK(finding->title == "host memory of node 1: 28.0 KiB needed, 27.0 KiB there");
  CHECK(finding->ranks == RankSet{2, 3});
  CHECK(ran.why_no_prediction() == "this run is out of memory");
  const Rehearsal both = copies("8 KiB");
  const Finding* of_both = lack(both);
  REQUIRE(of_both != nullptr);
  CHECK(of_both->title == "host memory of nodes 0-1: 28.0 KiB needed, 8.0 KiB there");
}

TEST_CASE("what is offloaded is reported beside the memory of the GPU") {
  // The four parts together are 16 bytes for each of the 512 x 513 parameters.
  const Rehearsal ran = offloaded("");
  const std::vector<NodeMemory> nodes = node_memory_of(ran.run);
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].needed >= Bytes(512 * 513 * 16));
  CHECK(nodes[0].holds_offloaded());
  const std::string text = render_run(ran, Style{}, false);
  CHECK(text.find(" of 2.0 TiB per node") != std::string::npos);
  Request request;
  request.command = "run";
  const Json node = json_of(ran, request).at("nodes").at(0);
  CHECK(node.at("ranks") == "0-3");
  CHECK(node.at("host_needed_bytes") == nodes[0].needed.count());
  CHECK(node.at("host_capacity_bytes") == int64_t{2048} << 30);
  CHECK(lack(offloaded(", memory: 4 MiB")) != nullptr);
}

TEST_CASE("no batch fits where what is offloaded alone is too much") {
  CHECK(offloaded(", memory: 4 MiB").results.advice.largest_batch_size == 0);
}

TEST_CASE(
    "a run that did not begin exceeds no memory, whatever ranks would have stood for others") {
  OneRun run;
  run.preparation.options.world_size = 4;
  run.preparation.options.classes =
      std::make_shared<const RankClasses>(std::vector<uint32_t>{0, 1, 1, 1});
  CHECK(!exceeds_node_memory(run));
}

}  // namespace node_memory_test
