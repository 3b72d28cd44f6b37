#pragma once

#include "model/trainer/framework/device_request.hpp"

namespace lockstep {

/// Reads `devices` or `tpu_cores` on a host with so many TPU devices (utilities/device_parser.py of
/// 1.4 to 1.9, accelerators/tpu.py of 2.0, fabric/accelerators/xla.py from 2.1 on). Null: the
/// argument is not given.
DeviceAnswer devices_of_tpu(const PlainValue* value, const Version& lightning, int64_t count);

/// Reads `devices` where the accelerator is Apple's GPU, of which a machine has one
/// (fabric/accelerators/mps.py).
DeviceAnswer devices_of_mps(const PlainValue* value);

}  // namespace lockstep
