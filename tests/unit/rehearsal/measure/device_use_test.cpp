// How busy the devices of one process are.
#include "rehearsal/measure/device_use.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

// By hand: a batch of 4 takes 4 x 3 ms in each of four layers, one after the other.
TEST_CASE("devices of one process are busy in turn") {
  const Rehearsal ran = advised(R"yaml(version: 1
cluster: {preset: dgx-h100, nodes: 1}
model:
  input: [1]
  layers:
    - Cost: {parameters: 1, forward: 1 ms, backward: 2 ms}
    - Cost: {parameters: 1, forward: 1 ms, backward: 2 ms}
    - Cost: {parameters: 1, forward: 1 ms, backward: 2 ms}
    - Cost: {parameters: 1, forward: 1 ms, backward: 2 ms}
  loss: MSELoss
data: {train: {samples: 32, batch_size: 4}}
trainer: {accelerator: gpu, devices: 4, max_epochs: 1, strategy: NaiveModelParallelStrategy}
)yaml");
  const std::vector<DeviceUse> devices = device_use(ran.run);
  REQUIRE(devices.size() == 4);
  for (const DeviceUse& device : devices) {
    CHECK(1000 * seconds(device.busy) == Approx(12).margin(0.1));
    CHECK(1000 * seconds(device.step) == Approx(48).margin(0.1));
    CHECK(device.memory_peak > Bytes{});
  }
  CHECK(busy_share(devices) == Approx(0.25).margin(0.01));
}
