#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::cli {

/// GPUs of this machine according to NVML, the library behind nvidia-smi.
struct GpuInventory {
  std::string driver;              ///< its version; empty: none answers
  int cuda_version = 0;            ///< the newest that the driver can run, as 13000; 0: unknown
  std::vector<std::string> names;  ///< of each GPU
  std::string problem;             ///< why there is none; empty: there are some
};

/// Loads libnvidia-ml.so.1 for the time of the call: nothing links it.
GpuInventory find_gpus();

/// Samples the utilisation of all GPUs until it is asked for it: the share of time in which some
/// kernel ran, as nvidia-smi defines it.
class UtilizationSampler {
 public:
  UtilizationSampler();
  ~UtilizationSampler();
  UtilizationSampler(const UtilizationSampler&) = delete;
  UtilizationSampler& operator=(const UtilizationSampler&) = delete;

  /// Mean over the samples so far and the first `gpus` GPUs, 0 .. 1; nothing where NVML gives none.
  std::optional<double> mean(size_t gpus) const;

 private:
  class Library;
  void sample();

  std::unique_ptr<Library> library_;
  std::vector<std::atomic<uint64_t>> percent_;  ///< by GPU, summed
  std::atomic<uint64_t> samples_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace lockstep::cli
