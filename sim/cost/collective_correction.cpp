#include "sim/cost/collective_correction.hpp"

#include <limits>

namespace lockstep::sim {

namespace {

using enum CorrectionTerm;

constexpr auto table_of_terms = std::to_array<CorrectionRow>({
    {launch_volta, "launch_volta", "launch and completion of a call, Volta and Turing, us", 6, 4,
     4.27, 3},
    {launch_ampere, "launch_ampere", "the same, Ampere and Ada, us", 6, 4, 5.64, 7},
    {launch_hopper, "launch_hopper", "the same, Hopper, us", 6, 4, 2.08, 4},
    {launch_blackwell, "launch_blackwell", "the same, Blackwell, us", 6, 4, 6.53, 2},
    {shared_process, "shared_process", "more for each further GPU that one process drives, us", 3,
     1.5, 3.22, 3},
    {latency_within, "latency_within", "factor of latencies inside of a node", 1.1, 0.2, 1, 7},
    {latency_between, "latency_between", "factor of latencies of several nodes", 1.1, 0.2, 1.16, 9},
    {pipeline, "pipeline", "share of sqrt(latency x transfer) that a pipeline needs to fill", 0.5,
     0.3, 0.512, 14},
    {pipeline_nvls, "pipeline_nvls", "the same for NVLS and NVLSTree", 1, 0.4, 0.913, 4},
    {efficiency_nvlink, "efficiency_nvlink", "of the rate that NCCL counts for NVLink", 1, 0.05,
     1.01, 3},
    {efficiency_nvlink_blackwell, "efficiency_nvlink_blackwell", "the same for Blackwell", 0.95,
     0.05, 0.945, 2},
    {efficiency_pcie, "efficiency_pcie", "the same for PCIe from GPU to GPU", 0.7, 0.15, 0.7, 0},
    {efficiency_host_memory, "efficiency_host_memory", "the same through memory of the host", 0.7,
     0.15, 0.674, 3},
    {efficiency_rdma, "efficiency_rdma", "the same over InfiniBand and RoCE", 1, 0.05, 1.01, 5},
    {efficiency_efa, "efficiency_efa", "the same over EFA", 0.7, 0.15, 0.578, 1},
    {efficiency_tcpx, "efficiency_tcpx", "the same over GPUDirect-TCPX and TCPXO", 0.95, 0.05,
     0.954, 2},
    {efficiency_tcp, "efficiency_tcp", "the same over TCP sockets", 0.7, 0.15, 0.7, 0},
    {socket_rate, "socket_rate", "of one TCP connection, GB/s", 2.5, 0.5, 2.5, 0},
    {latency_tcpx, "latency_tcpx", "more for a call over GPUDirect-TCPX and TCPXO, us", 30, 30,
     37.3, 2},
});
static_assert(table_of_terms.size() == correction_terms);

}  // namespace

std::span<const CorrectionRow> correction_rows() { return table_of_terms; }

CollectiveCorrection fitted_correction() {
  CollectiveCorrection correction;
  for (const CorrectionRow& row : table_of_terms) {
    correction.of(row.term) = row.fitted;
  }
  return correction;
}

CollectiveCorrection no_correction() {
  CollectiveCorrection correction;
  for (const CorrectionTerm factor :
       {latency_within, latency_between, efficiency_nvlink, efficiency_nvlink_blackwell,
        efficiency_pcie, efficiency_host_memory, efficiency_rdma, efficiency_efa, efficiency_tcpx,
        efficiency_tcp}) {
    correction.of(factor) = 1;
  }
  correction.of(socket_rate) = std::numeric_limits<double>::infinity();
  return correction;
}

}  // namespace lockstep::sim
