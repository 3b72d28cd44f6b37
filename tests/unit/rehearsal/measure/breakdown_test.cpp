// The parts of a step: each moment in one of them, by what the rank then waits for.
#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace breakdown_test {

namespace {

// DeepSpeed wants its own Adam where it offloads.
Rehearsal trained(const std::string& trainer) {
  const bool is_on_host = trainer.find("deepspeed") != std::string::npos &&
                          trainer.find("offload") != std::string::npos;
  return advised(R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [512], layers: [{repeat: 4, layers: [{Linear: [512, 512]}]}], loss: MSELoss}
optimizer: )yaml" +
                 std::string(is_on_host ? "DeepSpeedCPUAdam" : "AdamW") + R"yaml(
data: {train: {samples: 256, batch_size: 4}}
verify: {numerics: false}
trainer: {accelerator: gpu, devices: 4, max_steps: 4, )yaml" +
                 trainer + "}\n");
}

Breakdown parts_of(const Rehearsal& rehearsal) { return rehearsal.results.prediction.breakdown; }

Breakdown of_program(const std::string& statements) {
  return parts_of(
      advised("version: 1\ncluster: {preset: dgx-a100, ranks: 2, pcie: 10 GB/s}\n"
              "program:\n  main:\n" +
              statements));
}

}  // namespace

TEST_CASE("the parts of a step add up to it under every strategy") {
  for (const char* trainer :
       {"strategy: ddp", "strategy: deepspeed_stage_1", "strategy: deepspeed_stage_2",
        "strategy: deepspeed_stage_3", "strategy: deepspeed_stage_2_offload",
        "strategy: deepspeed_stage_3_offload, precision: bf16-mixed",
        "strategy: {FSDPStrategy: {auto_wrap_policy: [Linear]}}",
        "strategy: {FSDPStrategy: {auto_wrap_policy: [Linear], cpu_offload: true}}"}) {
    INFO(trainer);
    const Rehearsal ran = trained(trainer);
    const Breakdown parts = parts_of(ran);
    CHECK(parts.whole() == ran.results.prediction.step_time);
    CHECK(parts.optimizer_on_host <= parts.optimizer);
    CHECK(parts.waiting <= parts.idle);
  }
}

TEST_CASE("what offload copies is not data that a loader is late with") {
  const Breakdown whole = parts_of(trained("strategy: deepspeed_stage_2"));
  CHECK(whole.offload == Time{});
  CHECK(whole.host == Time{});
  CHECK(whole.optimizer_on_host == Time{});
  const Rehearsal ran = trained("strategy: deepspeed_stage_2_offload, precision: bf16-mixed");
  const Breakdown parts = parts_of(ran);
  CHECK(parts.offload > Time{});
  CHECK(parts.host > Time{});  // the cast of what has been updated
  CHECK(parts.optimizer_on_host == parts.optimizer);
  // A batch of 4 x 512 numbers and as many targets takes no more than without offload.
  CHECK(parts.data <= whole.data);
  const std::string text = render_run(ran, Style{}, false);
  CHECK(text.find("\n  offload (PCIe)  ") != std::string::npos);
  CHECK(text.find("\n  host  ") != std::string::npos);
  Request request;
  request.command = "run";
  const Json json = json_of(ran, request).at("prediction").at("breakdown_s");
  double sum = 0;
  for (const char* part :
       {"compute", "optimizer", "exposed_communication", "data", "host", "offload", "idle"}) {
    sum += json.at(part).get<double>();
  }
  CHECK(sum == Approx(seconds(*ran.results.prediction.step_time)));
}

TEST_CASE("a copy to the host takes the time of PCIe") {
  // Two ranks copy 2,500,000 numbers of 4 bytes each over the uplink of one PCIe switch, which has
  // 10 GB/s: 2 ms. The links add less than 2 us.
  const Breakdown parts = of_program(R"yaml(
    - let: {x: "full(2500000, 1.0)"}
    - copy: {tensor: x, to: cpu, as: h}
)yaml");
  CHECK(parts.offload >= 2_ms);
  CHECK(parts.offload <= 2_ms + 2_us);
  CHECK(parts.data == Time{});
}

TEST_CASE("a rank that is early for a collective waits for the others") {
  const Breakdown parts = of_program(R"yaml(
    - if: rank == 1
      then: [kernel: 3 ms]
    - all_reduce: {elements: 1000}
)yaml");
  CHECK(parts.compute == Time{});
  CHECK(parts.waiting >= 3_ms);
  CHECK(parts.waiting <= parts.idle);
}

}  // namespace breakdown_test
