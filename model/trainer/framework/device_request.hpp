#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/core/version.hpp"
#include "model/scenario/object.hpp"

namespace lockstep {

/// The devices that a Trainer selects on a node for a given `devices` argument.
struct DeviceSituation {
  Version lightning{2, 6, 0};
  bool cpu = false;               ///< the accelerator is the CPU: devices are processes
  int64_t visible = 0;            ///< GPUs, after CUDA_VISIBLE_DEVICES
  std::vector<int64_t> occupied;  ///< of them, held by others in exclusive mode
  bool interactive = false;       ///< in a notebook
  bool elastic = false;           ///< started by torchrun
  bool auto_select = false;       ///< auto_select_gpus, of 1.x
};

/// Which argument holds the value: they differ in what "none" may be.
enum class DeviceArgument : uint8_t { devices, gpus };

/// Which devices of a node a Trainer uses, or why it uses none.
struct DeviceAnswer {
  enum class Verdict : uint8_t {
    accepted,
    refused,  ///< this version, or this machine, does not take it
    invalid,  ///< no version takes it on any machine
  };
  Verdict verdict = Verdict::accepted;
  std::vector<int64_t> indices;  ///< of GPUs in the order of ranks; on CPU 0 .. processes - 1
  bool no_gpu = false;           ///< accepted as "no GPU": training continues on one CPU process
  std::string message{};         ///< why not
  std::string remedy{};
  std::string warning{};  ///< accepted, and Lightning means something else than it looks like
};

/// Reads `devices` or `gpus` as the version of Lightning does (device_parser.py of 1.4.9, 1.5.10
/// and 1.6.5, fabric/utilities/device_parser.py of 2.x, tuner/auto_gpu_select.py, and
/// fabric/accelerators/cuda.py for find_usable_cuda_devices). Null: the argument is not given.
DeviceAnswer devices_of(const PlainValue* value, DeviceArgument argument,
                        const DeviceSituation& situation);

/// How many GPUs CUDA shows for this value of CUDA_VISIBLE_DEVICES, of `present`: indices up to the
/// first that is no device; the same one twice shows none. Nothing: the variable is not set.
std::vector<int64_t> visible_devices(const std::optional<std::string>& variable, int64_t present);

}  // namespace lockstep
