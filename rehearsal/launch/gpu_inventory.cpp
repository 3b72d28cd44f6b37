#include "rehearsal/launch/gpu_inventory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

namespace lockstep::cli {

namespace {

// NVML as its reference manual gives it; every call returns 0 for success.
using Handle = void*;
struct Utilization {
  unsigned int gpu = 0;  ///< percent
  unsigned int memory = 0;
};
constexpr size_t text_bytes = 96;  // of names and versions, with the final zero

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      problem_ = "libnvidia-ml.so.1, a part of NVIDIA's driver, was not found";
      return;
    }
    if (const int result = call<int()>("nvmlInit_v2"); result != 0) {
      const auto text = function<const char*(int)>("nvmlErrorString");
      problem_ = fmt::format("NVIDIA's driver does not answer: {}",
                             text == nullptr ? std::to_string(result) : text(result));
      return;
    }
    is_open_ = true;
  }
  ~Nvml() {
    if (is_open_) {
      call<int()>("nvmlShutdown");
    }
    if (library_ != nullptr) {
      dlclose(library_);
    }
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_open() const { return is_open_; }
  const std::string& problem() const { return problem_; }

  std::string driver() const {
    std::array<char, text_bytes> text{};
    return call<int(char*, unsigned int)>("nvmlSystemGetDriverVersion", text.data(),
                                          static_cast<unsigned int>(text.size())) == 0
               ? text.data()
               : "";
  }
  int cuda_version() const {
    int version = 0;
    return call<int(int*)>("nvmlSystemGetCudaDriverVersion_v2", &version) == 0 ? version : 0;
  }
  unsigned int count() const {
    unsigned int count = 0;
    return call<int(unsigned int*)>("nvmlDeviceGetCount_v2", &count) == 0 ? count : 0;
  }
  std::string name(unsigned int index) const {
    std::array<char, text_bytes> text{};
    const Handle gpu = handle(index);
    return gpu != nullptr && call<int(Handle, char*, unsigned int)>(
                                 "nvmlDeviceGetName", gpu, text.data(),
                                 static_cast<unsigned int>(text.size())) == 0
               ? text.data()
               : "GPU";
  }
  std::optional<unsigned int> utilization(unsigned int index) const {
    Utilization rates;
    const Handle gpu = handle(index);
    const bool told = gpu != nullptr && call<int(Handle, Utilization*)>(
                                            "nvmlDeviceGetUtilizationRates", gpu, &rates) == 0;
    return told ? std::optional(rates.gpu) : std::nullopt;
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(library_, name));  // POSIX promises that it fits
  }
  // An old driver may lack the function: not 0.
  template <class Signature, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto found = function<Signature>(name);
    return found == nullptr ? -1 : found(arguments...);
  }
  Handle handle(unsigned int index) const {
    Handle gpu = nullptr;
    return call<int(unsigned int, Handle*)>("nvmlDeviceGetHandleByIndex_v2", index, &gpu) == 0
               ? gpu
               : nullptr;
  }

  void* library_;
  bool is_open_ = false;
  std::string problem_;
};

}  // namespace

GpuInventory find_gpus() {
  const Nvml nvml;
  GpuInventory inventory;
  inventory.problem = nvml.problem();
  if (!nvml.is_open()) {
    return inventory;
  }
  inventory.driver = nvml.driver();
  inventory.cuda_version = nvml.cuda_version();
  for (unsigned int index = 0; index < nvml.count(); ++index) {
    inventory.names.push_back(nvml.name(index));
  }
  if (inventory.names.empty()) {
    inventory.problem = "NVIDIA's driver knows no GPU";
  }
  return inventory;
}

class UtilizationSampler::Library : public Nvml {};

UtilizationSampler::UtilizationSampler() : library_(std::make_unique<Library>()) {
  if (library_->is_open()) {
    percent_ = std::vector<std::atomic<uint64_t>>(library_->count());
    thread_ = std::thread([this] { sample(); });
  }
}

UtilizationSampler::~UtilizationSampler() {
  stopping_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

// NVML gives the share of its own last period, a sixth of a second to a second: one look a period
// of ours is enough, and the pause between two is the sampling itself.
void UtilizationSampler::sample() {
  constexpr std::chrono::milliseconds period{100};
  while (!stopping_) {
    for (size_t gpu = 0; gpu < percent_.size(); ++gpu) {
      percent_[gpu] += library_->utilization(static_cast<unsigned int>(gpu)).value_or(0);
    }
    ++samples_;
    std::this_thread::sleep_for(period);
  }
}

std::optional<double> UtilizationSampler::mean(size_t gpus) const {
  const size_t counted = std::min(gpus, percent_.size());
  if (counted == 0 || samples_ == 0) {
    return std::nullopt;
  }
  const uint64_t sum = std::accumulate(
      percent_.begin(), percent_.begin() + static_cast<std::ptrdiff_t>(counted), uint64_t{0});
  return static_cast<double>(sum) / 100 / static_cast<double>(samples_ * counted);
}

}  // namespace lockstep::cli
