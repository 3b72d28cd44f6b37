#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// What computes, and with it the software that drives it: torch's device types.
enum class DeviceType : uint8_t {
  cpu,
  cuda,
  tpu,  ///< one device of XLA
  mps,  ///< the GPU of an Apple chip, through Metal
};

/// In front of a device's number in torch: "cuda", as in `cuda:0`.
constexpr std::string_view torch_name_of(DeviceType kind) {
  switch (kind) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "cuda";
    case DeviceType::tpu: return "xla";
    case DeviceType::mps: return "mps";
  }
  return "";
}

/// What people call one of them.
constexpr std::string_view word_for(DeviceType kind) {
  return kind == DeviceType::cpu ? "CPU" : kind == DeviceType::tpu ? "TPU" : "GPU";
}

}  // namespace lockstep
