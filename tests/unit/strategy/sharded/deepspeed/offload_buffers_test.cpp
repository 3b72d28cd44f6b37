// What stages 1 and 2 of DeepSpeed keep for gradients that cross to the host
// (deepspeed/runtime/zero/stage_1_and_2.py, temp_grad_buffer_for_gpu_offload and
// temp_grad_buffer_for_cpu_offload: zeros of largest_param_numel in the type of the model).
#include <catch2/catch.hpp>
#include <set>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace offload_buffers_test {

namespace {

/// Buffers for communication of so many bytes that are there to the end, by device.
std::multiset<int> lasting(bool offloads, int64_t bytes) {
  const Network network = with_block();
  TrainingPlan plan = plan_for(network, false);
  plan.activation_dtype = DType::bf16;
  plan.optimizers.front().is_on_host = offloads;
  const Trained trained = train_simulated(
      plan, 2,
      [offloads](const TrainingPlan& given) {
        DeepSpeedOptions options;
        options.offloads_optimizer = offloads;
        options.reduce_bucket_size = 1000;
        return std::make_unique<DeepSpeedPartitioned>(given, options);
      },
      two_samples, 2);
  std::map<int32_t, int> found;
  trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::allocate && row.bytes == bytes &&
        row.peer == static_cast<int32_t>(Purpose::communication)) {
      found[row.tag] = row.stream.device().value;
    } else if (row.row == RowKind::release) {
      found.erase(row.tag);
    }
  });
  std::multiset<int> devices;
  for (const auto& [buffer, device] : found) {
    devices.insert(device);
  }
  return devices;
}

}  // namespace

// The largest tensors of 4 - 8 - 8 - 8 - 2 are 8 x 8.
TEST_CASE(
    "an offloaded optimizer has a buffer of the largest tensor on the GPU and in host memory") {
  CHECK(lasting(true, 8 * 8 * 2) == std::multiset<int>{0, host_device.value});
  CHECK(lasting(false, 8 * 8 * 2).empty());
}

}  // namespace offload_buffers_test
