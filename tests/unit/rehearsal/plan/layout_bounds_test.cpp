// The bounds by which `plan` leaves layouts out, against the simulations that they stand for.
#include <catch2/catch.hpp>

#include "rehearsal/plan/layout_task.hpp"
#include "rehearsal/sweep/sweep_row_of.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace layout_bounds_test {
using lockstep::test::source_of_text;

namespace {

/// A GPT of four blocks; `feed_forward` ends each of them.
std::string gpt_on(const std::string& cluster, int nodes, const std::string& feed_forward,
                   const std::string& precision = "bf16-true") {
  return "version: 1\ncluster: " + cluster + R"yaml(
model:
  input: [256]
  input_dtype: int64
  layers:
    - {Embedding: [4096, 512], name: wte}
    - {PositionalEmbedding: [256, 512], name: wpe}
    - repeat: 4
      layers:
        - Residual:
            - LayerNorm: [512]
            - CausalSelfAttention: {embed_dim: 512, num_heads: 8}
        - Residual:
            - LayerNorm: [512]
)yaml" + feed_forward +
         R"yaml(    - {LayerNorm: [512], name: ln_f}
    - {Linear: {in_features: 512, out_features: 4096, bias: false}, name: lm_head}
  loss: CrossEntropyLoss
optimizer: {AdamW: {lr: 0.001}}
data: {train: {samples: 4096, batch_size: 2}}
trainer:
  accelerator: gpu
  max_epochs: 1
  strategy: ddp
  devices: 4
  num_nodes: )yaml" +
         std::to_string(nodes) + "\n  precision: " + precision + "\n";
}

const std::string dense =
    "            - Linear: [512, 2048]\n            - GELU\n            - Linear: [2048, 512]\n";

const std::string experts =
    "            - MixtureOfExperts: {embed_dim: 512, hidden_dim: 1024, num_experts: 4, top_k: "
    "2}\n";

/// A layout that was simulated, as `plan` does it.
struct Simulated {
  Layout layout;
  SweepRow row;
};

/// Of some hundred layouts every `stride`-th: all of them take minutes, and have held once.
constexpr size_t stride = 9;

std::vector<Simulated> some_layouts(const std::string& text) {
  const CaseSource source = source_of_text(text);
  const TaskOfScenario of = task_of(source, std::nullopt);
  REQUIRE(of.why_not.empty());
  std::vector<Simulated> simulated;
  const std::vector<Layout> layouts = layouts_of(of.task);
  for (size_t index = 0; index < layouts.size(); index += stride) {
    const Layout& layout = layouts[index];
    CaseSource own = source;
    own.set = layout.settings(of.task);
    RehearseRequest request;
    request.explore = false;
    simulated.push_back({layout, run_sweep_case(own, SweepCases(), 1, request)});
  }
  return simulated;
}

void check_bounds(const std::string& text) {
  int64_t predicted = 0;
  for (const Simulated& each : some_layouts(text)) {
    if (!is_predicted(each.row.verdict)) {
      continue;
    }
    ++predicted;
    INFO(each.layout.description << ", micro-batch " << each.layout.micro_batch << ", recompute "
                                 << name_of(each.layout.recompute) << "\n"
                                 << each.row.command);
    const Value step = value_in(each.row, "step_time");
    const Value memory = value_in(each.row, "memory.peak");
    REQUIRE(step.is(Value::Kind::quantity));
    REQUIRE(memory.is(Value::Kind::quantity));
    CHECK(each.layout.least_time > Time{});
    CHECK(each.layout.least_time.count() <= step.quantity().count);
    CHECK(each.layout.least_memory.count() <= memory.quantity().count);
  }
  CHECK(predicted > 10);
}

}  // namespace

TEST_CASE("no layout of a plan takes less time or memory than its bounds say") {
  check_bounds(gpt_on("{preset: dgx-a100, nodes: 2, gpus: 4}", 2, dense));
}

TEST_CASE("bounds hold where parameters and gradients are wider than activations") {
  check_bounds(gpt_on("{preset: dgx-a100, nodes: 2, gpus: 4}", 2, dense, "bf16-mixed"));
}

TEST_CASE("bounds hold where links are slow, and where switches add up") {
  check_bounds(gpt_on("{preset: dgx-h100, gpus: 4, nvlink: 0}", 1, dense));
  check_bounds(gpt_on("{preset: dgx-h100, gpus: 4}", 1, dense));
}

TEST_CASE("bounds hold where parameters come over a slow network") {
  check_bounds(gpt_on(
      "{preset: dgx-a100, nodes: 2, gpus: 4, nics: 1, network: {bandwidth: 10 Gb/s}}", 2, dense));
}

TEST_CASE("bounds hold where ranks divide experts") {
  check_bounds(gpt_on("{preset: dgx-a100, nodes: 2, gpus: 4}", 2, experts));
}

}  // namespace layout_bounds_test
