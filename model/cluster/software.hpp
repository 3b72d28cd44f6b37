#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The software whose kernels run: a framework with the way in which it is used.
enum class SoftwareProfile : uint8_t {
  pytorch,   ///< eager
  compiled,  ///< torch.compile
  fused,     ///< eager with kernels of APEX, of TransformerEngine or of one's own
  deepspeed,
  megatron,
  graph,  ///< frameworks that run a graph: TensorFlow, MXNet, OneFlow, PaddlePaddle
};

/// In the order of SoftwareProfile.
std::vector<std::string_view> software_profile_names();

/// The value of `versions.kernels`: `PROFILE`, or `PROFILE without SOURCE`.
struct KernelChoice {
  SoftwareProfile software = SoftwareProfile::pytorch;
  std::string
      without{};  ///< the published throughputs that took no part in the fit; empty: all did
};
std::optional<KernelChoice> kernel_choice(std::string_view text);

}  // namespace lockstep
