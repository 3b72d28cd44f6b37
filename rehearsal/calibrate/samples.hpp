#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/calibration.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// The 5th, 50th and 95th percentile, by the nearest rank. `times` are not empty.
MeasuredTime percentiles(std::vector<Time> times);

/// Gathers durations out of the journals of real runs, and makes a calibration of them. A duration
/// runs from when an operation could begin (it was submitted, and what was before it in its stream
/// and what it comes after had finished) to its finish, as the simulation counts it; so it holds
/// what the library and the operating system take in between.
class Samples {
 public:
  /// Kernels, copies to the device and the intervals between submissions. The first step is
  /// warm-up; kernels that ran beside communication of their rank are left out.
  void add_training(const OneRun& run, const std::string& name);
  /// Collectives and messages: from when the last rank could begin to when the last one finished.
  /// The clocks of ranks are aligned by the ends of barriers and reductions; the first of each size
  /// is warm-up.
  void add_communication(const OneRun& run);

  /// Without its origin. Curves and points in a fixed order. Each training is held out in turn.
  Calibration calibration() const;

 private:
  struct KernelKey {
    Kernel kernel = Kernel::copy;
    std::optional<LayerKind> layer{};
    DType dtype = DType::fp32;
    int32_t ranks = 1;
    Flops flops{};
    Bytes traffic{};
    auto operator<=>(const KernelKey&) const = default;
  };
  struct TransferKey {
    OpKind kind = OpKind::barrier;
    int32_t ranks = 1;
    Bytes bytes{};
    auto operator<=>(const TransferKey&) const = default;
  };
  struct KernelSample {
    KernelKey key;
    Time duration{};
    int32_t training = 0;
    int32_t rank = 0;
    int32_t step = 0;
  };
  /// A collective of a training, for judging alone.
  struct Exchange {
    TransferKey key;
    Time duration{};
    int32_t training = 0;
    int32_t step = 0;
  };
  void add_rank(const OneRun& run, int32_t rank);
  void add_exchanges(const OneRun& run);
  void add_launches(const OneRun& run);
  std::vector<KernelCurve> curves(std::optional<int32_t> without_training) const;
  void hold_out_kernels(int32_t training, std::vector<HeldOut>& held_out) const;
  void hold_out_exchanges(const std::vector<TransferCurve>& curves,
                          std::vector<HeldOut>& held_out) const;

  std::vector<std::string> trainings_;  ///< their names
  std::vector<KernelSample> kernels_;
  std::vector<Exchange> exchanges_;
  std::map<TransferKey, std::vector<Time>> transfers_;
  std::map<int32_t, std::vector<Time>> launches_;  ///< by ranks
};

}  // namespace lockstep::cli
