#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster/fabric.hpp"
#include "model/core/units.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

/// Peak rate of a GPU for one dtype; `achieved` (no dtype) is taken as it is for every dtype.
struct DeviceFlops {
  std::string dtype;  ///< "bf16", .. or "achieved"
  FlopsPerSecond rate{};
  SourcePlace place{};
};

struct GpuSpec {
  Given<std::string> preset;
  Given<Bytes> memory;
  Given<BytesPerSecond> memory_bandwidth;
  std::vector<DeviceFlops> flops;
  SourcePlace place{};
};

struct NetworkSpec {
  Given<BytesPerSecond> bandwidth;  ///< of one NIC, one direction
  Given<Time> latency;
  Given<double> oversubscription;  ///< at least 1
  Given<Fabric> fabric;
  SourcePlace place{};
};

/// Local NVMe storage of each node.
struct DriveSpec {
  Given<Bytes> size;
  Given<BytesPerSecond> read;
  Given<BytesPerSecond> write;
  Given<Time> latency;  ///< of each request
  SourcePlace place{};
};

/// What an hour of a cluster costs by.
enum class PriceUnit : uint8_t { node_hour, gpu_hour };

/// What the machine costs, in place of the list price of a preset.
struct PriceSpec {
  Given<double> amount;
  Given<std::string> currency;  ///< by its three letters: "USD"
  Given<PriceUnit> per;
  SourcePlace place{};
};

/// The cost model of collectives.
enum class CollectiveModel : uint8_t { nccl, gloo, ring, tree };

/// The machine. What is absent comes from the preset.
struct ClusterSpec {
  Given<std::string> preset;
  Given<int64_t> nodes;
  std::optional<GpuSpec> gpu;
  Given<int64_t> gpus;  ///< in each node
  std::vector<Placed<int64_t>> occupied;
  Given<BytesPerSecond> nvlink;  ///< of one GPU, one direction
  Given<BytesPerSecond> pcie;    ///< of one GPU, one direction
  Given<int64_t> nics;           ///< in each node
  std::optional<NetworkSpec> network;
  Given<int64_t> cpu_cores;    ///< of each node
  Given<Bytes> memory;         ///< of each node
  Given<BytesPerSecond> disk;  ///< of each node
  std::optional<DriveSpec> nvme;
  Given<double> mtbf;  ///< mean time between failures of a node, in seconds: years do not fit
                       ///< in a Time
  std::optional<PriceSpec> price;
  Given<Time> start_time;  ///< of a process, until its trainer begins: imports, model, data
  Given<int64_t> ranks;    ///< a bare program of that many ranks
  Given<CollectiveModel> collectives;
  Given<std::string> nccl_xml;  ///< paths, relative to the scenario file
  Given<std::string> nvidia_smi;
  Given<std::string> calibration;
  SourcePlace place{};
};

/// `horovod`: no process group of torch; ranks hand tensors over by name (hvd.allreduce).
enum class ProcessGroupBackend : uint8_t { nccl, gloo, mpi, horovod };

struct ProcessGroupSpec {
  Given<ProcessGroupBackend> backend;
  Given<Time> timeout;
  Given<Bytes> eager_limit;
  SourcePlace place{};
};

}  // namespace lockstep
