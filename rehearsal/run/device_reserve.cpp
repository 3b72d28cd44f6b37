#include "rehearsal/run/device_reserve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "properties/diagnosis/remedy.hpp"

namespace lockstep::cli {

namespace {

constexpr Bytes cuda_context{int64_t{512} << 20};
constexpr Bytes of_connection{int64_t{12} << 20};
constexpr int64_t connections = 2;
constexpr int64_t most_channels = 24;
constexpr int64_t channels_without_nvlink = 4;

int64_t communicators_of(const OneRun& run, int32_t rank) {
  int64_t count = run.preparation.options.world_size > 1 ? 1 : 0;
  if (run.result.journal == nullptr) {
    return count;
  }
  for (const Membership& group : run.result.journal->groups[static_cast<size_t>(rank)]) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), rank) != group.members.end();
    count += member && group.members.size() > 1 ? 1 : 0;
  }
  return count;
}

/// Of the fullest GPU; null: there is none with a limit.
const DeviceMemory* fullest_gpu(const OneRun& run, size_t rank) {
  const DeviceMemory* found = nullptr;
  if (rank < run.result.memory.size()) {
    for (const auto& [device, memory] : run.result.memory[rank]) {
      const bool counts = !is_off_device(device) && memory.capacity != Bytes::max();
      found = counts && (found == nullptr || memory.peak > found->peak) ? &memory : found;
    }
  }
  return found;
}

}  // namespace

DeviceReserve reserve_of(const OneRun& run, int32_t rank) {
  const Preparation& preparation = run.preparation;
  if (preparation.scenario->is_bare_program() || preparation.placement.cpu ||
      preparation.placement.device != DeviceType::cuda) {
    return {};
  }
  DeviceReserve reserve{cuda_context, {}};
  if (!preparation.gloo) {
    const int64_t nvlinks = run.machine.cluster.node.nvlinks;
    const int64_t channels =
        nvlinks > 0 ? std::min(most_channels, nvlinks * 2) : channels_without_nvlink;
    reserve.nccl = of_connection * connections * channels * communicators_of(run, rank);
  }
  return reserve;
}

std::vector<Finding> tight_memory(const OneRun& run) {
  const bool ran_out = std::any_of(run.result.ends.begin(), run.result.ends.end(),
                                   [](const RankEnd& end) { return end.out_of_memory; });
  RankSet ranks;
  for (size_t rank = 0; rank < run.result.ends.size() && !ran_out; ++rank) {
    const DeviceMemory* memory = fullest_gpu(run, rank);
    const Bytes reserve = reserve_of(run, static_cast<int32_t>(rank)).total();
    if (memory != nullptr && reserve > Bytes{} && memory->peak + reserve > memory->capacity) {
      ranks.add(static_cast<int32_t>(rank));
    }
  }
  if (ranks.size() == 0) {
    return {};
  }
  const int32_t first = ranks.first();
  const DeviceMemory& memory = *fullest_gpu(run, static_cast<size_t>(first));
  const DeviceReserve reserve = reserve_of(run, first);
  Finding finding = finding_of(
      "LS401", Level::warning,
      fmt::format("{} {} {} of {}, which leaves too little for the CUDA context{}", ranks.phrase(),
                  ranks.size() == 1 ? "holds" : "hold", bytes_text(memory.peak.count()),
                  bytes_text(memory.capacity.count()), reserve.nccl > Bytes{} ? " and NCCL" : ""));
  finding.ranks = ranks;
  finding.why.text = fmt::format("the CUDA context takes about {} (estimated)",
                                 bytes_text(reserve.cuda_context.count()));
  if (reserve.nccl > Bytes{}) {
    finding.why.text +=
        fmt::format(", NCCL's buffers about {} (estimated)", bytes_text(reserve.nccl.count()));
  }
  finding.follows.push_back(
      "whether it fits depends on the versions of the driver, of torch and of "
      "NCCL, and on fragmentation");
  finding.fix = remedy_for("LS401");
  return {finding};
}

}  // namespace lockstep::cli
