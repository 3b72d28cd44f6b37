#include "rehearsal/launch/device_choice.hpp"

#include <fmt/format.h>

namespace lockstep::cli {

namespace {

struct Lack {
  std::string problem;
  std::string remedy;
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// What keeps this machine from running the ranks on GPUs; empty: nothing.
Lack lack_of(const DeviceRequest& request, const DeviceFacts& facts,
             const GpuInventory& inventory) {
  if (!facts.has_cuda_program) {
    return {"the rank program lockstep-rank-cuda was not found",
            "install a CUDA Toolkit 13 and NCCL, then ./dev libtorch and ./dev build; lockstep "
            "doctor lists what is missing"};
  }
  if (!inventory.problem.empty()) {
    return {"no GPU found: " + inventory.problem,
            "use --device cpu, or a machine with a GPU and its driver"};
  }
  if (inventory.cuda_version < cuda_version_needed) {
    return {fmt::format("NVIDIA's driver {} is too old: it runs CUDA {}, and {} is needed",
                        inventory.driver, version_text(inventory.cuda_version),
                        version_text(cuda_version_needed)),
            "install a driver of the 580 series or later"};
  }
  const auto gpus = static_cast<int64_t>(inventory.names.size());
  const int64_t wanted = int64_t{facts.ranks} * facts.devices_per_rank;
  if (gpus < facts.devices_per_rank) {
    return {
        fmt::format("a rank drives {} GPUs, but this machine has {}", facts.devices_per_rank, gpus),
        "use --device cpu, or a strategy with fewer devices"};
  }
  if (wanted > gpus && !request.oversubscribe) {
    return {fmt::format("{} GPUs are needed, but this machine has {}", wanted, gpus),
            "let ranks share a GPU with --oversubscribe (slow; for experiments), or start them "
            "on several hosts with torchrun, mpirun or srun"};
  }
  return {};
}

}  // namespace

DeviceChoice choose_device(const DeviceRequest& request, const DeviceFacts& facts,
                           const GpuInventory& inventory) {
  DeviceChoice choice;
  if (request.wish == DeviceWish::cpu) {
    return choice;
  }
  const Lack lack = lack_of(request, facts, inventory);
  if (request.wish == DeviceWish::cuda) {
    choice.cuda = lack.problem.empty();
    choice.problem = lack.problem;
    choice.remedy = lack.remedy;
    return choice;
  }
  choice.cuda = facts.scenario_has_gpus && lack.problem.empty();
  if (facts.scenario_has_gpus && !lack.problem.empty()) {
    choice.told = "on the CPU: " + lack.problem;
  } else if (!facts.scenario_has_gpus) {
    choice.told = "on the CPU: the scenario names no GPU";
  }
  return choice;
}

}  // namespace lockstep::cli
