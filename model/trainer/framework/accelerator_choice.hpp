#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/trainer/framework/version.hpp"

namespace lockstep {

/// Why a Trainer does not start with an accelerator.
struct AcceleratorRefusal {
  std::string message;
  std::string remedy;
  bool is_name = true;  ///< of an accelerator in some version
};

/// Of names beside cpu and auto (AcceleratorRegistry of 1.6 to 2.6, DeviceType of 1.4 and 1.5): the
/// version's own reason where it has not the name, or where no machine here has the hardware.
/// Nothing: it is a GPU of CUDA. No other hardware is ever taken for one.
std::optional<AcceleratorRefusal> refusal_of_accelerator(std::string_view asked,
                                                         const Version& lightning);

}  // namespace lockstep
