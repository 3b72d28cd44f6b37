#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace location_test {

namespace {

Ran trained(const std::string& devices, const std::string& program,
            const std::string& accelerator = "gpu") {
  return run_text(
      "version: 1\ncluster: {preset: " + std::string(accelerator == "gpu" ? "dgx-a100" : "cpu") +
          "}\nmodel: {layers: [{Linear: [4, 2]}, {Buffer: {shape: [3], name: mask}}], input: [4]}\n"
          "data: {train: {samples: 16, batch_size: 4}}\n"
          "trainer: {accelerator: " +
          accelerator + ", devices: " + devices + ", strategy: ddp, max_epochs: 1}\nprogram:\n" +
          program,
      standard_strategies());
}

std::string code(const Ran& ran, size_t rank) {
  return ran.log(rank).findings.empty() ? "" : ran.log(rank).findings.front().code;
}

const std::string to_gpu_zero =
    "  training_step: [{let: {w: \"full(3, 1.0)\"}}, {copy: {tensor: w, to: gpu 0}}]\n";

}  // namespace

TEST_CASE("a tensor on GPU 0 is wrong on every rank but the one whose device that is") {
  const Ran ran = trained("2", to_gpu_zero);
  CHECK(code(ran, 0).empty());
  CHECK(code(ran, 1) == "LS310");
  const Ran listed = trained("[2, 0]", to_gpu_zero);
  CHECK(code(listed, 0) == "LS310");
  CHECK(code(listed, 1).empty());
}

TEST_CASE("a device beyond those of the node is no device") {
  const Ran ran = trained(
      "2", "  training_step: [{let: {w: \"full(3, 1.0)\"}}, {copy: {tensor: w, to: gpu 9}}]\n");
  CHECK(ran.result.ends[0].message.find("invalid device ordinal") != std::string::npos);
}

TEST_CASE("an attribute that is made in __init__ stays on the CPU") {
  const std::string init = "  __init__: [{let: {self.weights: \"full(3, 1.0)\"}}]\n";
  const std::string use =
      "  training_step: [{let: {ones: \"full(3, 1.0)\"}}, {let: {sum: ones + self.weights}}]\n";
  const Ran lost = trained("2", init + use);
  CHECK(code(lost, 0) == "LS310");
  CHECK(lost.result.ends[0].message.find("`ones` is on the rank's GPU, `self.weights` on cpu") !=
        std::string::npos);
  const Ran moved =
      trained("2", init + "  on_fit_start: [{copy: {tensor: self.weights, to: device}}]\n" + use);
  CHECK(code(moved, 0).empty());
  CHECK(code(moved, 1).empty());
  CHECK(code(trained("2", init + use, "cpu"), 0).empty());
}

TEST_CASE("a registered buffer is on the device and has a name") {
  const Ran ran =
      trained("2",
              "  training_step: [{let: {ones: \"full(3, 1.0)\"}}, {let: {sum: ones + self.mask}}, "
              "{assert: sum(sum) == 3}]\n");
  CHECK(code(ran, 0).empty());
  CHECK(ran.log(0).steps == 2);
}

TEST_CASE("single numbers on the CPU mix with tensors of a GPU") {
  const Ran ran =
      trained("2",
              "  training_step: [{let: {ones: \"full(3, 1.0)\"}}, {copy: {tensor: loss, "
              "to: cpu, as: l}}, {let: {x: ones + l}}]\n");
  CHECK(code(ran, 0).empty());
}

TEST_CASE("NCCL takes tensors of the rank's own GPU only") {
  const std::string reduce = "{all_reduce: {tensor: w}}]\n";
  const std::string made =
      "  training_step: [{let: {w: \"full(3, 1.0)\"}}, {copy: {tensor: w, to: ";
  CHECK(code(trained("2", made + "cpu}}, " + reduce), 0) == "LS310");
  const Ran other = trained("2", made + "gpu 0}}, " + reduce);
  CHECK(other.result.ends[1].message ==
        "Tensor found on device cuda:0 but backend constructor expects cuda:1");
  CHECK(code(trained("2", made + "device}}, " + reduce), 1).empty());
}

TEST_CASE("sync_dist of a tensor on the CPU reaches no backend of NCCL, from 2.1 on") {
  const std::string log =
      "  validation_step: [{let: {x: \"full(1, 1.0)\"}}, {copy: {tensor: x, to: cpu}}, {log: "
      "{name: "
      "x, value: x, sync_dist: true}}]\n";
  CHECK(code(trained("2", log), 0) == "LS310");
  CHECK(code(trained("2", log, "cpu"), 0).empty());
  const std::string alone =
      "  validation_step: [{let: {x: \"full(1, 1.0)\"}}, {copy: {tensor: x, to: cpu}}, {log: "
      "{name: "
      "x, value: x}}]\n";
  CHECK(code(trained("2", alone), 0).empty());
}

TEST_CASE(
    "what a hook binds to a registered buffer is the buffer that the next forward broadcasts") {
  const Ran ran = trained(
      "2",
      "  training_step:\n    - forward\n    - assert: sum(self.mask) == 3 * (global_step > 0)\n"
      "    - let: {self.mask: \"full(3, 1.0 + rank)\"}\n"
      "    - assert: sum(self.mask) == 3 * (1 + rank)\n");
  CHECK(code(ran, 0).empty());
  CHECK(code(ran, 1).empty());
  CHECK(ran.log(1).steps == 2);
}

TEST_CASE("a registered buffer takes tensors like itself only") {
  const Ran number = trained("2", "  training_step: [{let: {self.mask: 3}}]\n");
  CHECK(number.result.ends[0].message.find("cannot assign a number to `self.mask`") !=
        std::string::npos);
  const Ran longer = trained("2", "  training_step: [{let: {self.mask: \"full(4, 1.0)\"}}]\n");
  CHECK(longer.result.ends[0].message.find("is not modelled") != std::string::npos);
}

TEST_CASE("tensors in a list are where they were made, and an entry of a vector is a number") {
  const auto multiplied = [](const std::string& by) {
    return code(trained("2",
                        "  __init__: [{let: {self.ws: \"[full(4, 1.0), full(4, 2.0)]\", "
                        "self.w: \"full(4, 1.0)\"}}]\n"
                        "  training_step: [{let: {x: \"full(4, 1.0)\"}}, {let: {y: \"x * " +
                            by + "\"}}]\n"),
                0);
  };
  CHECK(multiplied("self.ws[1]") == "LS310");
  CHECK(multiplied("self.w") == "LS310");
  CHECK(multiplied("self.w[1]").empty());
}

TEST_CASE("columns of the batch are on the rank's GPU, and a sum on the CPU is a number") {
  const std::string init = "  __init__: [{let: {self.weights: \"full(4, 1.0)\"}}]\n";
  const auto step = [&](const std::string& value) {
    return trained("2", init + "  training_step: [{let: {x: \"" + value + "\"}}]\n");
  };
  const Ran mixed = step("self.weights * score");
  CHECK(code(mixed, 0) == "LS310");
  CHECK(mixed.result.ends[0].message == mixed.result.ends[1].message);
  CHECK(code(step("sum(self.weights * score)"), 0) == "LS310");
  CHECK(code(step("sum(self.weights) * score"), 0).empty());
  CHECK(code(step("len(self.weights) * score"), 0).empty());
  CHECK(code(step("score * target"), 0).empty());
}

TEST_CASE("the hooks around a step have the columns of its batch") {
  const Ran ran =
      trained("2",
              "  on_train_batch_start: [{let: {self.before: score}}]\n"
              "  on_train_batch_end: [{assert: \"sum(abs(self.before - score)) == 0\"}]\n");
  CHECK(code(ran, 0).empty());
  CHECK(ran.result.ends[0].message == "");
  CHECK(ran.log(0).steps == 2);
}

TEST_CASE("a list of tensors on several devices is not joined") {
  const auto joined = [](const std::string& second) {
    return code(
        trained("2",
                "  training_step: [{let: {x: \"full(4, 1.0)\"}}, {copy: {tensor: x, to: " + second +
                    ", as: y}}, {let: {both: \"[x, y]\"}}, "
                    "{let: {all: concat(both)}}]\n"),
        0);
  };
  CHECK(joined("cpu") == "LS310");
  CHECK(joined("device").empty());
}

}  // namespace location_test
