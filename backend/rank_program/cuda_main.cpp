// lockstep-rank-cuda: LibTorch on GPUs, messages by NCCL.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "backend/device/world.hpp"
#include "backend/nccl/cuda_device.hpp"
#include "backend/nccl/gpus.hpp"
#include "backend/rank_program/rank_main.hpp"
#include "rehearsal/launch/real_run.hpp"
#include "rehearsal/launch/shared_gpu.hpp"

namespace lockstep::cli {

namespace {

RunResult run_over_nccl(backend::Meeting& meeting, const RankOrder& order) {
  if (order.oversubscribe) {
    for (const auto& [name, value] : variables_of_shared_gpu(order.place.rank)) {
      setenv(name.c_str(), value.c_str(), 0);  // NCCL reads them at its first call
    }
  }
  try {
    const std::vector<int> gpus = backend::gpus_of_rank(
        order.place.local_rank, order.options.devices_per_rank, order.oversubscribe);
    const auto board = meeting.board("run");
    backend::CudaDevice device(gpus, order.options, 0, *board);
    backend::DeviceSeat seat{order.place.rank, device, *board,
                             [&meeting] { meeting.wait_for_all(); }};
    seat.follower = &order.follower;
    seat.when_lost = order.when_lost;
    seat.tell = [](const std::string& text) { fmt::print(stderr, "the GPU or NCCL: {}\n", text); };
    return backend::run_rank(order.options, order.deadline, seat, order.program);
  } catch (const backend::NoGpu& error) {
    throw MissingCapability(error.what());
  } catch (const backend::DeviceError& error) {
    throw RealRunFailed(fmt::format("the GPU or NCCL failed: {}", error.what()));
  }
}

}  // namespace

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  using namespace lockstep::cli;
  // Streams that share a work queue of the GPU wait for one another, and a communication that waits
  // for its peer holds up the kernels behind it. 32 is the most there are.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const RankWorld world{"lockstep-rank-cuda",
                        lockstep::backend::nccl_version,
                        lockstep::backend::gpu_description,
                        run_over_nccl,
                        true,
                        {}};
  main_of_rank(argc, argv, world);
}
