#pragma once

#include <vector>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// One device of a rank that drives several.
struct DeviceUse {
  Time busy{};  ///< of a steady step: some kernel or transfer of the device's streams runs
  Time step{};
  Bytes memory_peak{};  ///< of the whole run
};

/// By device, of rank 0; empty where a rank has one device, or took no step.
std::vector<DeviceUse> device_use(const OneRun& run);
/// The part of a step in which a device is busy, 0 .. 1, on average over these.
double busy_share(const std::vector<DeviceUse>& devices);

}  // namespace lockstep::cli
