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
  std::string_view has{};  ///< of what machines here have none
};

// accelerators/*.py and accelerator_connector.py of 1.4.9 to 2.6.0. From 2.1 on TPUs are driven by
// XLAAccelerator.
constexpr auto all_hardware = std::to_array<Hardware>({
    {.name = "tpu", .plural = "TPUs", .class_name = "TPUAccelerator", .has = "a TPU"},
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
     .has = "a GPU of Apple"},
});

constexpr const char* what_is_here = "use gpu or cpu: machines here have GPUs with CUDA, or CPUs";

std::string not_available(const Hardware& hardware, const Version& lightning) {
  if (lightning < v1_6) {
    return fmt::format("You passed `accelerator='{}'`, but {} are not available", hardware.name,
                       hardware.plural);
  }
  const bool is_xla = hardware.name == "tpu" && lightning >= v2_1;
  return fmt::format(
      "`{}` can not run on your system since the accelerator is not available: no cluster here has "
      "{}",
      is_xla ? "XLAAccelerator" : hardware.class_name, hardware.has);
}

std::string text_of_version(const Version& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

}  // namespace

std::optional<AcceleratorRefusal> refusal_of_accelerator(std::string_view asked,
                                                         const Version& lightning) {
  if (asked == "gpu" || (asked == "cuda" && lightning >= v1_7)) {
    return std::nullopt;
  }
  if (asked == "cuda") {
    return AcceleratorRefusal{"`accelerator: cuda` came with Lightning 1.7",
                              "write accelerator: gpu"};
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
                              what_is_here};
  }
  if (lightning >= known->until) {
    return AcceleratorRefusal{fmt::format("Lightning {} has no accelerator `{}`: {}",
                                          text_of_version(lightning), asked, known->gone),
                              what_is_here};
  }
  return AcceleratorRefusal{not_available(*known, lightning), what_is_here};
}

}  // namespace lockstep
