// Offload to NVMe: what lies on the drive, in host memory and on the GPU.
#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace drive_offload_test {
using Catch::Matchers::Contains;

namespace {

constexpr int64_t mebibyte = 1 << 20;

TrainingPlan adam_on_the_host(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers = {{{.kind = OptimizerKind::adamw, .lr = 1e-3, .is_on_host = true}}};
  return plan;
}

StrategyArguments to_the_drive() {
  StrategyArguments arguments;
  arguments.set("stage", int64_t{3});
  arguments.set("offload_optimizer", true);
  arguments.set("offload_optimizer_device", std::string("nvme"));
  arguments.set("reduce_bucket_size", int64_t{1'000'000});
  return arguments;
}

Trained trained(const TrainingPlan& plan, const StrategyArguments& arguments, int32_t ranks,
                int64_t steps = 2) {
  return train_simulated(
      plan, ranks, [&](const TrainingPlan& own) { return deepspeed().make(own, arguments); },
      [](int32_t rank, int64_t) { return Batch{{rank}}; }, steps);
}

int64_t peak_of(const Trained& run, DeviceId device, Purpose purpose) {
  return run.result.memory.front().at(device).peak_by_purpose[static_cast<size_t>(purpose)].count();
}

}  // namespace

// Three tensors of 4 MiB over two ranks: 2 MiB each. One sub-group of 6 MiB: on the drive
// parameters, two moments and gradients, in host memory four buffers of its size, the gradients as
// they were reduced, and in the first step the two moments that the optimizer has just made.
TEST_CASE("host memory has buffers, and the drive what a rank updates") {
  const Network network = network_of_tensors({4, 4, 4});
  const Trained run = trained(adam_on_the_host(network), to_the_drive(), 2);
  REQUIRE(run.result.ends.front().kind == RankEnd::Kind::finished);
  CHECK(run.result.memory.front().at(drive_device).peak == Bytes(4 * 6 * mebibyte));
  CHECK(peak_of(run, drive_device, Purpose::parameter) == 6 * mebibyte);
  CHECK(peak_of(run, drive_device, Purpose::optimizer_state) == 12 * mebibyte);
  CHECK(peak_of(run, drive_device, Purpose::gradient) == 6 * mebibyte);
  CHECK(peak_of(run, host_device, Purpose::workspace) == 4 * 6 * mebibyte);
  CHECK(peak_of(run, host_device, Purpose::gradient) == 6 * mebibyte);
  CHECK(peak_of(run, host_device, Purpose::optimizer_state) == 12 * mebibyte);
  CHECK(peak_of(run, DeviceId{0}, Purpose::optimizer_state) == 0);
}

// The same in sub-groups of one tensor each: buffers of 2 MiB.
TEST_CASE("buffers are as large as the largest sub-group") {
  const Network network = network_of_tensors({4, 4, 4});
  StrategyArguments arguments = to_the_drive();
  arguments.set("sub_group_size", int64_t{500'000});
  const Trained run = trained(adam_on_the_host(network), arguments, 2);
  CHECK(run.result.memory.front().at(drive_device).peak == Bytes(4 * 6 * mebibyte));
  CHECK(peak_of(run, host_device, Purpose::workspace) == 4 * 2 * mebibyte);
}

TEST_CASE("what is smaller than a request of the drive stays in host memory") {
  const Network network = network_of_tensors({1, 0.5});  // 0.75 MiB of a rank
  const Trained run = trained(adam_on_the_host(network), to_the_drive(), 2);
  REQUIRE(run.result.ends.front().kind == RankEnd::Kind::finished);
  CHECK_FALSE(run.result.memory.front().contains(drive_device));
  CHECK(peak_of(run, host_device, Purpose::parameter) == 3 * mebibyte / 4);
}

// ZeRO-Infinity (Rajbhandari et al., SC 2021, section 3): model states in mixed precision with Adam
// are 20 bytes for each parameter. 2 of them, reduced gradients, are in host memory, the others on
// the drive: 4 B of fp32 parameters, 8 of moments, 4 of gradients, and 2 of bf16 parameters.
TEST_CASE("model states take 20 bytes for each parameter, of which the drive has 18") {
  constexpr int64_t layers = 40;
  constexpr int64_t of_layer = 64 * mebibyte;
  constexpr int32_t ranks = 16;
  const Network network = network_of_tensors(std::vector<double>(layers, 256));
  TrainingPlan plan = adam_on_the_host(network);
  plan.activation_dtype = DType::bf16;
  StrategyArguments arguments = to_the_drive();
  arguments.set("offload_parameters", true);
  arguments.set("offload_params_device", std::string("nvme"));
  arguments.set("max_in_cpu", int64_t{0});
  arguments.set("params_buffer_count", layers);
  arguments.set("sub_group_size", of_layer);
  const Trained run = trained(plan, arguments, ranks);
  for (const RankEnd& end : run.result.ends) {
    CHECK(end.message == "");
  }
  constexpr int64_t own = layers * of_layer / ranks;
  CHECK(run.result.memory.front().at(drive_device).peak == Bytes(18 * own));
  CHECK(peak_of(run, host_device, Purpose::gradient) == 2 * own);
  CHECK(peak_of(run, host_device, Purpose::parameter) == 0);
  CHECK(peak_of(run, DeviceId{0}, Purpose::parameter) == 0);
}

TEST_CASE("torch's Adam cannot come back from the drive, and DeepSpeed's not stay on the GPU") {
  const Network network = network_of_tensors({4});
  TrainingPlan plan = adam_on_the_host(network);
  plan.optimizers.front().is_on_host = false;
  plan.deepspeed = {0, 8, 2};  // later ones refuse it before
  const Trained with_torch = trained(plan, to_the_drive(), 2);
  CHECK_THAT(with_torch.result.ends.front().message, Contains("use DeepSpeedCPUAdam"));
  CHECK(trained(plan, to_the_drive(), 2, 1).result.ends.front().message == "");
  StrategyArguments on_the_gpu;
  on_the_gpu.set("stage", int64_t{2});
  const Trained run = trained(adam_on_the_host(network), on_the_gpu, 2);
  CHECK_THAT(run.result.ends.front().message, Contains("CPUAdam param is on cuda"));
}

// Values of tensors that are read, updated and written are those of tensors that stay.
TEST_CASE("weights do not depend on where they are kept") {
  NetworkDescription description;
  description.name = "wide";
  description.input = {1024};
  description.layers = {linear(1024, 1024), linear(1024, 8)};
  description.loss = {.kind = "MSELoss"};
  const BuildResult built = build_network(description);
  REQUIRE(built.ok());
  TrainingPlan plan;
  plan.network = &built.network;
  plan.numerics = true;
  plan.optimizers.front().momentum = 0.5;
  plan.deepspeed = {0, 8, 2};  // later ones do not offload SGD
  StrategyArguments on_the_gpu;
  on_the_gpu.set("stage", int64_t{3});
  StrategyArguments on_the_drive = to_the_drive();
  on_the_drive.set("offload_parameters", true);
  on_the_drive.set("offload_params_device", std::string("nvme"));
  on_the_drive.set("max_in_cpu", int64_t{0});
  on_the_drive.set("sub_group_size", int64_t{100'000});
  const Trained expected = trained(plan, on_the_gpu, 2);
  const Trained run = trained(plan, on_the_drive, 2);
  REQUIRE(run.result.ends.front().message == "");
  CHECK(run.result.memory.front().at(drive_device).peak == Bytes(8 * mebibyte));
  CHECK(run.parameters == expected.parameters);
}

TEST_CASE("a second partition that begins behind the end of a parameter raises") {
  const Network network = small_network();  // its last bias has 2 elements, which 4 ranks cut
  TrainingPlan plan;
  plan.network = &network;
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{3});
  arguments.set("config.zero_optimization.zero_hpz_partition_size", int64_t{4});
  arguments.set("config.zero_allow_untested_optimizer", true);
  const Trained run = trained(plan, arguments, 4);
  CHECK_THAT(run.result.ends.back().message,
             Contains("IndexError: start out of range (expected to be in range of [-2, 2]"));
}

}  // namespace drive_offload_test
