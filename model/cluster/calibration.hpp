#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/kernel.hpp"
#include "model/core/op.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// Durations of repeated measurements: 5th, 50th and 95th percentile, in ascending order.
struct MeasuredTime {
  Time low{};
  Time median{};
  Time high{};
};

struct KernelPoint {
  Flops flops{};
  Bytes traffic{};  ///< of memory, as the simulation counts it
  MeasuredTime time{};
};

/// One kind of kernel on one type, in several sizes, while `ranks` ranks of one host computed.
struct KernelCurve {
  Kernel kernel = Kernel::copy;
  std::optional<LayerKind> layer{};  ///< of layer and loss kernels; the others have none
  DType dtype = DType::fp32;
  int32_t ranks = 1;
  std::vector<KernelPoint> points{};
};

struct TransferPoint {
  Bytes bytes{};  ///< as Op::bytes
  MeasuredTime time{};
};

/// One kind of communication among `ranks` ranks of one host. Of `send`: from one of them to
/// another; of `copy`: from a rank's host memory to its device, while `ranks` ranks computed.
struct TransferCurve {
  OpKind kind = OpKind::all_reduce;
  int32_t ranks = 2;
  std::vector<TransferPoint> points{};  ///< by rising bytes, each size once
};

/// Host time to submit one operation, while `ranks` ranks of one host did.
struct LaunchOverhead {
  int32_t ranks = 1;
  MeasuredTime time{};
};

/// One step of a training against what all other trainings say of it: what its range is based on.
struct HeldOut {
  enum class Part : uint8_t {
    compute,        ///< the kernels of one rank, added up, by fits without any of this training
    communication,  ///< its collectives, added up, by curves that were measured without computing
  };
  Part part = Part::compute;
  std::string training{};  ///< "tokens, 2 ranks"
  Time measured{};
  Time predicted{};
};

/// Where measurements come from. Texts are for people; only `backend` and `preset` decide.
struct CalibrationOrigin {
  std::string lockstep_version{};
  std::string backend{};    ///< "gloo" or "nccl"
  std::string device{};     ///< "AMD EPYC", "NVIDIA H100 80GB HBM3"
  std::string preset{};     ///< of that device, as in `cluster.gpu`; empty: there is none
  std::string host_cpu{};   ///< as the operating system names it
  int32_t cores = 1;        ///< of the host
  int32_t ranks = 1;        ///< the most that were measured
  std::string libraries{};  ///< "LibTorch 2.11.0, Gloo"
  std::string driver{};     ///< of GPUs; empty without
  std::string date{};       ///< "2026-11-22", UTC
  std::string command{};    ///< the line that made it
  double load_average = 0;  ///< of the last minute, before measuring
  bool is_quick = false;    ///< fewer sizes and repetitions
};

/// How fast one machine really is. What the file of `lockstep calibrate` holds.
struct Calibration {
  CalibrationOrigin origin{};
  std::vector<KernelCurve> kernels{};
  std::vector<TransferCurve> transfers{};
  std::vector<LaunchOverhead> launch_overheads{};
  std::vector<HeldOut> held_out{};
};

/// Returns the measured number of ranks that is nearest to `ranks` by ratio; of two the
/// larger, which is measured under more load. `measured` is not empty.
int32_t nearest_ranks(const std::vector<int32_t>& measured, int32_t ranks);

}  // namespace lockstep
