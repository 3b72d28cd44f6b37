#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/core/device_type.hpp"
#include "model/core/dtype.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// The fraction of peak that a kernel of some size reaches: ceiling * flops / (flops + half). Small
/// kernels do not fill a device, and none reaches its peak.
struct EfficiencyCurve {
  double ceiling = 1;
  Flops half{};  ///< a kernel of this many operations reaches half of the ceiling

  /// In (0, ceiling]; the ceiling itself for `half` = 0.
  double fraction(Flops flops) const;
};

/// How fast a device computes on one type.
struct ComputeSpeed {
  FlopsPerSecond peak{};
  EfficiencyCurve efficiency{};
};

/// Capabilities of a device. Peaks are dense (no sparsity); memory is that of the data sheet.
struct DeviceModel {
  std::string name{};
  DeviceType type = DeviceType::cpu;
  /// CUDA compute capability times 10 (80 = Ampere A100); 0 for a device without CUDA.
  int compute_capability = 0;
  /// Whether other GPUs reach its memory over PCIe. NVIDIA's driver refuses it on GeForce cards.
  bool has_peer_to_peer = true;
  Bytes memory{};
  BytesPerSecond memory_bandwidth{};
  /// The fraction of memory bandwidth that streaming kernels reach.
  double memory_efficiency = 1;
  /// By DType. Nothing where the hardware has no such arithmetic.
  std::array<std::optional<ComputeSpeed>, dtype_count> speeds{};
  /// fp32 matrix products on tensor cores in TF32 (torch.backends.cuda.matmul.allow_tf32).
  std::optional<ComputeSpeed> tf32{};
  /// Host time to submit one kernel.
  Time launch_overhead{};
  std::string source{};      ///< of the peaks: data sheet and year
  std::string assumption{};  ///< what is assumed and not measured; empty once calibrated

  /// The speed on a type; where the hardware has none, that of fp32, through which frameworks
  /// emulate it, and of fp64 in turn. Ensures that the device has one of them.
  const ComputeSpeed& speed(DType dtype) const;
  /// Whether it has memory and links of its own, beside its host's.
  bool is_accelerator() const { return type != DeviceType::cpu; }
  bool supports(DType dtype) const { return speeds[static_cast<size_t>(dtype)].has_value(); }
};

/// The roofline (Williams, Waterman, Patterson 2009) with efficiencies: the longer of computing
/// `flops` and moving `moved` bytes of device memory. Without the launch overhead.
Time roofline_time(const DeviceModel& device, DType dtype, Flops flops, Bytes moved);

}  // namespace lockstep
