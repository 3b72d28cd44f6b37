#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::sim {

/// Physical quantities that NCCL's tuner does not count, one value each.
enum class CorrectionTerm : uint8_t {
  launch_volta,
  launch_ampere,
  launch_hopper,
  launch_blackwell,
  shared_process,
  latency_within,
  latency_between,
  pipeline,
  pipeline_nvls,
  efficiency_nvlink,
  efficiency_nvlink_blackwell,
  efficiency_pcie,
  efficiency_host_memory,
  efficiency_rdma,
  efficiency_efa,
  efficiency_tcpx,
  efficiency_tcp,
  socket_rate,
  latency_tcpx,
};
inline constexpr size_t correction_terms = 19;

/// A term, what it means and where its value comes from.
struct CorrectionRow {
  CorrectionTerm term{};
  std::string_view name;
  std::string_view meaning;
  double usual = 0;   ///< expected before any measurement
  double spread = 1;  ///< how far measurements may move it: one unit of the fit's penalty
  double fitted = 0;  ///< by bench/collective_fit over all of data/nccl-tests
  int sources = 0;    ///< sources of measurements that decide it; 0: none, it is assumed
};
std::span<const CorrectionRow> correction_rows();

/// Values of the terms, by term.
struct CollectiveCorrection {
  std::array<double, correction_terms> values{};

  double of(CorrectionTerm term) const { return values[static_cast<size_t>(term)]; }
  double& of(CorrectionTerm term) { return values[static_cast<size_t>(term)]; }
};
/// The fitted values.
CollectiveCorrection fitted_correction();
/// No correction: what NCCL's tuner counts, unchanged.
CollectiveCorrection no_correction();

}  // namespace lockstep::sim
