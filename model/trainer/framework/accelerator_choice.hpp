#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/core/device_type.hpp"
#include "model/core/version.hpp"

namespace lockstep {

/// Why a Trainer does not start with an accelerator.
struct AcceleratorRefusal {
  std::string message;
  std::string remedy;
  bool is_name = true;  ///< of an accelerator in some version
};

/// Of names beside cpu and auto (AcceleratorRegistry of 1.6 to 2.6, DeviceType of 1.4 and 1.5): the
/// version's own reason where it has not the name, or where the machine has not the hardware.
/// Nothing: it is what `machine` has. No other hardware is ever taken for it.
std::optional<AcceleratorRefusal> refusal_of_accelerator(std::string_view asked,
                                                         const Version& lightning,
                                                         DeviceType machine = DeviceType::cuda);

/// What decides where a Trainer trains.
struct AcceleratorSituation {
  Version lightning{2, 6, 0};
  DeviceType machine = DeviceType::cuda;  ///< what a node has; cpu: nothing else
  bool is_visible = true;                 ///< some of it is shown to the processes
  bool is_cpu_by_strategy = false;        ///< `ddp_cpu`
  bool gives_gpus = false;                ///< `gpus`
  bool gives_devices = false;             ///< `devices`
  bool gives_tpu_cores = false;           ///< `tpu_cores`
};

struct AcceleratorChoice {
  DeviceType device = DeviceType::cpu;
  std::optional<AcceleratorRefusal> refusal{};
  bool is_refused_by_cores = false;  ///< the refusal is of `tpu_cores`
  std::string warning{};             ///< of `accelerator`, or of `devices` where it is not given
  std::string remedy{};
};

/// Reads `accelerator` as the version does (accelerator_connector.py). Empty: it is not given.
AcceleratorChoice choose_accelerator(std::string_view asked, const AcceleratorSituation& situation);

}  // namespace lockstep
