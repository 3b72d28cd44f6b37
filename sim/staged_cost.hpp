#pragma once

#include <deque>
#include <map>
#include <vector>

#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// The cluster as Gloo's TCP connections see it: they begin and end in host memory. Ranks of one
/// node talk over loopback and those of two nodes over one NIC, whatever NVLink and GPUDirect could
/// do. Rates of loopback are those of the `cpu` preset.
Cluster over_tcp(Cluster cluster);

/// Gloo's collectives of tensors on GPUs. c10d's Gloo process group copies such a tensor to pinned
/// host memory, communicates there and copies the result back (ProcessGroupGloo.cpp,
/// AsyncAllreduceCUDAWork and the other *CUDAWork). So each call takes a copy to the host and one
/// back, over the PCIe of the rank, beside what the host network takes. Copies of the program
/// itself stay those of the GPUs.
class StagedCommunicationCost final : public CommunicationCost {
 public:
  /// `hosts` prices what goes over_tcp(cluster), and outlives this; `cluster` has the GPUs. Tensors
  /// of ranks on CPU (`on_gpus` false) are not copied.
  StagedCommunicationCost(TopologyCommunicationCost& hosts, const Cluster& cluster,
                          const DeviceModel& host, bool on_gpus);

  TransferPlan collective(const CollectiveCall& call) override;
  TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) override;
  TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) override;
  const std::vector<BytesPerSecond>& link_capacities() const override { return capacities_; }
  void add_latency(LinkIndex link, Time latency) override { hosts_.add_latency(link, latency); }

 private:
  Time to_host(int32_t rank, Bytes bytes);
  Time from_host(int32_t rank, Bytes bytes);

  TopologyCommunicationCost& hosts_;
  TopologyCommunicationCost devices_;
  bool on_gpus_;
  std::vector<BytesPerSecond> capacities_;  ///< of the hosts' links, then of the devices'
  /// Links of plans of `devices_`, numbered behind those of the hosts. Addresses stay.
  std::deque<std::vector<LinkIndex>> moved_;
  std::map<const std::vector<LinkIndex>*, const std::vector<LinkIndex>*> moved_from_;
};

}  // namespace lockstep::sim
