#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/core/op.hpp"
#include "sim/cost/collective_correction.hpp"
#include "sim/cost/nccl_choice.hpp"
#include "sim/cost/nccl_graph_search.hpp"

namespace lockstep::sim {

/// What the messages of a communicator cross that is slowest: the class of environment that a
/// correction is fitted for.
enum class PathClass : uint8_t { nvlink, pcie, host_memory, rdma, efa, tcpx, tcp };
std::string_view name_of(PathClass path);

/// What a collective takes, alone on its links.
struct CollectivePrice {
  std::string way;  ///< "Ring LL128"; "point to point"
  int channels = 0;
  bool goes_by_trees = false;
  double fixed_us = 0;     ///< launch and latency: no link is busy
  double transfer_us = 0;  ///< links are busy
  double time_us() const { return fixed_us + transfer_us; }
};

/// Prices of the collectives of one communicator of NCCL: what its tuner chooses, at the tuner's
/// figures and the correction.
class NcclPricing {
 public:
  /// How a communicator is set up.
  struct Setup {
    Cluster cluster;
    NcclMembers members;
    NcclSettings settings{};
    NcclVersion version{};
    int64_t gpus_per_process = 1;
    CollectiveCorrection correction = fitted_correction();
  };
  explicit NcclPricing(const Setup& setup);

  /// `bytes` as in Op::bytes. One member: nothing.
  CollectivePrice price(OpKind kind, Bytes bytes) const;

  /// From here on by this correction.
  void correct(const CollectiveCorrection& correction) { correction_ = correction; }
  const NcclCommunicator& communicator() const { return communicator_; }
  PathClass path() const { return path_; }
  /// Why these prices go beyond what was measured: sentences. Empty: they do not.
  std::vector<std::string> extrapolations() const;

 private:
  CollectivePrice tuned(NcclFunction function, int64_t bytes) const;
  CollectivePrice messages(OpKind kind, int64_t bytes) const;
  CollectivePrice corrected(const NcclEstimate& estimate, bool is_nvls) const;
  double limited_by_channels(const NcclCandidate& candidate) const;
  double limited_by_sockets(const NcclGraph& graph) const;

  NcclCommunicator communicator_;
  NcclSettings settings_;
  CollectiveCorrection correction_;
  PathClass path_ = PathClass::nvlink;
  double nic_GBps_ = 0;            ///< of all NICs of a node that members use
  int sockets_of_connection_ = 1;  ///< over TCP
  int64_t gpus_per_process_ = 1;
  std::array<std::vector<NcclCandidate>, 5> candidates_;  ///< by NcclFunction
};

/// Bytes that nccl-tests prints for a call: those of the larger side.
Bytes larger_side(OpKind kind, Bytes bytes, int64_t ranks);
/// The factor from algorithm bandwidth to bus bandwidth, as nccl-tests has it.
double bus_factor(OpKind kind, int64_t ranks);

}  // namespace lockstep::sim
