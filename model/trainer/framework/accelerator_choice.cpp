#include "model/trainer/framework/accelerator_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/trainer/framework/lightning_versions.hpp"

namespace lockstep {

namespace {

struct Hardware {
  std::string_view name;
  std::string_view plural;
  std::string_view class_name;
  Version since{};
  Version until{99, 0, 0};  ///< the first that has it not in the package itself
  std::string_view gone{};
  std::string_view has{};      ///< of what machines here have none
  std::string_view cluster{};  ///< a preset with it
};

// accelerators/*.py and accelerator_connector.py of 1.4.9 to 2.6.0. From 2.1 on TPUs are driven by
// XLAAccelerator.
constexpr auto all_hardware = std::to_array<Hardware>({
    {.name = "tpu",
     .plural = "TPUs",
     .class_name = "TPUAccelerator",
     .has = "a TPU",
     .cluster = "tpu-v3-8"},
    {.name = "ipu",
     .plural = "IPUs",
     .class_name = "IPUAccelerator",
     .until = v2_1,
     .gone = "2.1 moved it to the package lightning-graphcore, and 2.3 took it out",
     .has = "an IPU of Graphcore"},
    {.name = "hpu",
     .plural = "HPUs",
     .class_name = "HPUAccelerator",
     .since = v1_6,
     .until = v2_1,
     .gone = "2.1 moved it to the package lightning-habana, and from 2.5 on it says that HPU is "
             "currently not supported",
     .has = "a Gaudi"},
    {.name = "mps",
     .plural = "MPS",
     .class_name = "MPSAccelerator",
     .since = v1_7,
     .has = "a GPU of Apple",
     .cluster = "apple-m2-ultra"},
});

const char* words_of_machine(DeviceType machine) {
  switch (machine) {
    case DeviceType::cpu: return "the machine has CPUs alone";
    case DeviceType::cuda: return "the machine has GPUs with CUDA";
    case DeviceType::tpu: return "the machine has TPUs";
    case DeviceType::mps: return "the machine has a GPU of Apple";
  }
  return "";
}

const char* accelerator_of(DeviceType machine) {
  switch (machine) {
    case DeviceType::cpu: return "accelerator: cpu";
    case DeviceType::cuda: return "accelerator: gpu or cpu";
    case DeviceType::tpu: return "accelerator: tpu";
    case DeviceType::mps: return "accelerator: mps or cpu";
  }
  return "";
}

std::string remedy_on(DeviceType machine, std::string_view cluster) {
  return cluster.empty()
             ? fmt::format("use {}: no cluster of a scenario can have it", accelerator_of(machine))
             : fmt::format("use {}, or a cluster that has it, such as {}", accelerator_of(machine),
                           cluster);
}

std::string not_available(const Hardware& hardware, const Version& lightning, DeviceType machine) {
  if (lightning < v1_6) {
    return fmt::format("You passed `accelerator='{}'`, but {} are not available", hardware.name,
                       hardware.plural);
  }
  const bool is_xla = hardware.name == "tpu" && lightning >= v2_1;
  return fmt::format(
      "`{}` can not run on your system since the accelerator is not available: {}, not {}",
      is_xla ? "XLAAccelerator" : hardware.class_name, words_of_machine(machine), hardware.has);
}

std::string text_of_version(const Version& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

// From 1.7 on `gpu` is whichever backend is there, and the GPU of Apple before that of CUDA.
std::string refusal_of_gpu(std::string_view asked, const Version& lightning, DeviceType machine) {
  if (asked == "cuda") {
    return fmt::format(
        "`CUDAAccelerator` can not run on your system since the accelerator is not available: {}",
        words_of_machine(machine));
  }
  if (lightning < v1_7) {
    return fmt::format("{}: {}",
                       lightning < v1_6
                           ? "You passed `accelerator='gpu'`, but GPUs are not available"
                           : "`GPUAccelerator` can not run on your system since the accelerator is "
                             "not available",
                       words_of_machine(machine));
  }
  return fmt::format("No supported gpu backend found!: {}", words_of_machine(machine));
}

std::optional<DeviceType> type_named(std::string_view name) {
  return name == "tpu"   ? std::optional(DeviceType::tpu)
         : name == "mps" ? std::optional(DeviceType::mps)
                         : std::nullopt;
}

}  // namespace

std::optional<AcceleratorRefusal> refusal_of_accelerator(std::string_view asked,
                                                         const Version& lightning,
                                                         DeviceType machine) {
  if (asked == "cuda" && lightning < v1_7) {
    return AcceleratorRefusal{"`accelerator: cuda` came with Lightning 1.7",
                              "write accelerator: gpu"};
  }
  if (asked == "gpu" || asked == "cuda") {
    const bool is_apple = machine == DeviceType::mps && asked == "gpu" && lightning >= v1_7;
    if (machine == DeviceType::cuda || machine == DeviceType::cpu || is_apple) {
      return std::nullopt;
    }
    return AcceleratorRefusal{refusal_of_gpu(asked, lightning, machine),
                              remedy_on(machine, "dgx-a100")};
  }
  const auto* const known = std::ranges::find(all_hardware, asked, &Hardware::name);
  if (known == all_hardware.end()) {
    return AcceleratorRefusal{
        fmt::format("no version of Lightning has the accelerator `{}`", asked), "use gpu or cpu",
        false};
  }
  if (lightning < known->since) {
    return AcceleratorRefusal{fmt::format("`accelerator: {}` came with Lightning {}", asked,
                                          text_of_version(known->since)),
                              fmt::format("set versions.lightning to {} or newer, or use {}",
                                          text_of_version(known->since),
                                          machine == DeviceType::cuda ? "gpu or cpu" : "cpu")};
  }
  if (lightning >= known->until) {
    return AcceleratorRefusal{fmt::format("Lightning {} has no accelerator `{}`: {}",
                                          text_of_version(lightning), asked, known->gone),
                              remedy_on(machine, known->cluster)};
  }
  if (type_named(asked) == machine) {
    return std::nullopt;
  }
  return AcceleratorRefusal{not_available(*known, lightning, machine),
                            remedy_on(machine, known->cluster)};
}

namespace {

// Lightning looks for TPUs first, then for IPUs and HPUs, which no machine here has, then for MPS,
// and for CUDA last; a machine has one of them. Up to 1.5 it takes what an argument asks for.
AcceleratorChoice automatic_accelerator(const AcceleratorSituation& situation) {
  AcceleratorChoice choice;
  const bool asks = situation.lightning >= v1_6 || situation.gives_gpus ||
                    situation.gives_devices || situation.gives_tpu_cores;
  const bool knows = situation.machine != DeviceType::mps || situation.lightning >= v1_7;
  if (situation.is_visible && asks && knows) {
    choice.device = situation.machine;
  } else if (situation.is_visible && knows) {
    choice.warning =
        "`accelerator: auto` without `gpus` or `devices` trains on CPU before Lightning 1.6";
    choice.remedy = "give the number: devices: 1";
  }
  return choice;
}

// 1.x trains on CPU unless an argument names GPUs or TPU cores.
AcceleratorChoice default_of_1(const AcceleratorSituation& situation) {
  AcceleratorChoice choice;
  if (situation.gives_tpu_cores) {
    choice.device = DeviceType::tpu;
    choice.refusal = refusal_of_accelerator("tpu", situation.lightning, situation.machine);
    choice.is_refused_by_cores = choice.refusal.has_value();
  } else if (situation.gives_gpus) {
    choice.device = situation.machine == DeviceType::mps ? DeviceType::mps : DeviceType::cuda;
    choice.refusal = refusal_of_accelerator("gpu", situation.lightning, situation.machine);
  } else if (situation.gives_devices) {
    choice.warning =
        "without `accelerator` Lightning 1.x trains on CPU, and `devices` is a number of "
        "processes";
    choice.remedy = fmt::format("write accelerator: {} beside it",
                                situation.machine == DeviceType::tpu ? "tpu" : "gpu");
  }
  return choice;
}

}  // namespace

AcceleratorChoice choose_accelerator(std::string_view asked,
                                     const AcceleratorSituation& situation) {
  AcceleratorChoice choice;
  if (situation.is_cpu_by_strategy || asked == "cpu") {
    return choice;
  }
  if (asked.empty() && situation.lightning < v2_0) {
    return default_of_1(situation);
  }
  if (asked.empty() || asked == "auto") {
    return automatic_accelerator(situation);
  }
  choice.device = situation.machine;
  choice.refusal = refusal_of_accelerator(asked, situation.lightning, situation.machine);
  if (!choice.refusal && !situation.is_visible) {
    choice.device = DeviceType::cpu;
    choice.refusal = AcceleratorRefusal{"no supported GPU is visible on this machine",
                                        "use accelerator: cpu, or a cluster with GPUs"};
  }
  return choice;
}

}  // namespace lockstep
