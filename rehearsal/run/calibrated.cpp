#include "rehearsal/run/calibrated.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "io/calibration/calibration_file.hpp"
#include "model/cluster/presets.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

std::string path_of(const Placed<std::string>& named) {
  const bool on_command_line = named.place.file.starts_with("--set");
  const std::filesystem::path folder =
      on_command_line ? "" : std::filesystem::path(named.place.file).parent_path();
  return (folder / named.value).string();
}

/// Why a calibration of this origin says nothing of the machine; empty: it does.
std::string mismatch(const CalibrationOrigin& origin, const DeviceModel& device) {
  const bool measured_gpu = origin.backend == "nccl";
  const DeviceType measured = measured_gpu ? DeviceType::cuda : DeviceType::cpu;
  const bool same = origin.preset.empty() || origin.preset == device.name;
  if (measured == device.type && same) {
    return "";
  }
  return fmt::format("it was measured on {} ({}), but the scenario's cluster uses {}",
                     origin.device, origin.preset.empty() ? origin.backend : origin.preset,
                     device.name);
}

}  // namespace

std::string text_of(const CalibrationUse& use) {
  return fmt::format("{}, {}, {}{} ({})", use.origin.device, plural(use.origin.ranks, "rank"),
                     use.origin.date, use.origin.is_quick ? ", quick" : "", use.file);
}

std::string preset_of_gpu(const std::string& name) {
  // NVML names "NVIDIA H100 80GB HBM3", which is one of the spellings that scenarios may use.
  const PresetAnswer answer = find_device_name(name);
  const bool is_gpu = answer.verdict == PresetAnswer::Verdict::modelled && answer.name != "cpu";
  return is_gpu ? answer.name : "";
}

std::string calibration_file(const Scenario& scenario) {
  const bool is_named = scenario.cluster && scenario.cluster->calibration;
  return is_named ? path_of(*scenario.cluster->calibration) : "";
}

NamedCalibration calibration_of(const Scenario& scenario, const Machine& machine) {
  NamedCalibration named;
  if (!scenario.cluster || !scenario.cluster->calibration) {
    return named;
  }
  const Placed<std::string>& given = *scenario.cluster->calibration;
  named.file = std::filesystem::path(given.value).filename().string();
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    named.problems.push_back({Problem::Kind::invalid, given.place,
                              fmt::format("calibration `{}`: {}", given.value, what), remedy});
  };
  if (machine.is_flat) {
    refuse("the cluster is only a network, without a device that could have been measured",
           "name a machine, such as cluster: {gpu: cpu}, or leave the calibration out");
    return named;
  }
  try {
    Calibration calibration = read_calibration(path_of(given));
    const DeviceModel& device = machine.cluster.node.device;
    if (const std::string why = mismatch(calibration.origin, device); !why.empty()) {
      const std::string own =
          calibration.origin.preset.empty() ? "a GPU" : calibration.origin.preset;
      refuse(why, fmt::format("write cluster: {{gpu: {}}}, or calibrate on {}", own, device.name));
      return named;
    }
    named.calibration = std::make_shared<const Calibration>(std::move(calibration));
  } catch (const CalibrationError& error) {
    refuse(error.what(), error.remedy());
  }
  return named;
}

}  // namespace lockstep::cli
