// What people call GPUs and machines.
#include <algorithm>
#include <array>

#include "model/cluster/presets.hpp"
#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

// Where a short form has several sizes, the larger memory: the output names the preset in full.
constexpr auto aliases_of_devices = std::to_array<PresetAlias>({
    {"p100", "p100-sxm2-16gb"},
    {"p100-sxm2", "p100-sxm2-16gb"},
    {"p100-pcie", "p100-pcie-16gb"},
    {"p40-24gb", "p40"},
    {"v100", "v100-sxm2-32gb"},
    {"v100-sxm2", "v100-sxm2-32gb"},
    {"v100-32gb", "v100-sxm2-32gb"},
    {"v100-16gb", "v100-sxm2-16gb"},
    {"v100-pcie", "v100-pcie-32gb"},
    {"t4-16gb", "t4"},
    {"a100", "a100-sxm4-80gb"},
    {"a100-sxm", "a100-sxm4-80gb"},
    {"a100-sxm4", "a100-sxm4-80gb"},
    {"a100-80gb", "a100-sxm4-80gb"},
    {"a100-80g", "a100-sxm4-80gb"},
    {"a100-sxm-80gb", "a100-sxm4-80gb"},
    {"a100-40gb", "a100-sxm4-40gb"},
    {"a100-40g", "a100-sxm4-40gb"},
    {"a100-sxm-40gb", "a100-sxm4-40gb"},
    {"a100-pcie", "a100-pcie-80gb"},
    {"a100-80gb-pcie", "a100-pcie-80gb"},
    {"a30-24gb", "a30"},
    {"a10-24gb", "a10"},
    {"a40-48gb", "a40"},
    {"rtx-a6000", "a6000"},
    {"a6000-48gb", "a6000"},
    {"a10g-24gb", "a10g"},
    {"3090", "rtx-3090"},
    {"rtx-3090-24gb", "rtx-3090"},
    {"l4-24gb", "l4"},
    {"l40-48gb", "l40"},
    {"l40s-48gb", "l40s"},
    {"6000-ada", "rtx-6000-ada"},
    {"rtx-6000-ada-generation", "rtx-6000-ada"},
    {"5090", "rtx-5090"},
    {"rtx-5090-32gb", "rtx-5090"},
    {"4090", "rtx-4090"},
    {"rtx-4090-24gb", "rtx-4090"},
    {"h100", "h100-sxm5-80gb"},
    {"h100-sxm", "h100-sxm5-80gb"},
    {"h100-sxm5", "h100-sxm5-80gb"},
    {"h100-80gb", "h100-sxm5-80gb"},
    {"h100-80gb-hbm3", "h100-sxm5-80gb"},
    {"h100-pcie", "h100-pcie-80gb"},
    {"h100-nvl", "h100-nvl-94gb"},
    {"h200", "h200-sxm-141gb"},
    {"h200-sxm", "h200-sxm-141gb"},
    {"h200-sxm5", "h200-sxm-141gb"},
    {"h200-141gb", "h200-sxm-141gb"},
    {"b200", "b200-sxm-180gb"},
    {"b200-sxm", "b200-sxm-180gb"},
    {"b200-180gb", "b200-sxm-180gb"},
    {"b300", "b300-sxm-288gb"},
    {"b300-sxm", "b300-sxm-288gb"},
    {"gb200", "gb200-186gb"},
    {"2080-ti", "rtx-2080-ti"},
    {"titan-rtx-24gb", "titan-rtx"},
    {"rtx-8000", "quadro-rtx-8000"},
    {"rtx-2080ti", "rtx-2080-ti"},
    {"tpu-v2", "tpu-v2-core"},
    {"tpu-v3", "tpu-v3-core"},
    {"tpu-v5-lite", "tpu-v5e"},
    {"trillium", "tpu-v6e"},
    {"apple-m2-ultra", "m2-ultra"},
});

// Like in memory, speed and links.
constexpr auto other_devices = std::to_array<UnmodelledPreset>({
    {"k80", "t4"},
    {"m60", "t4"},
    {"p4", "t4"},
    {"v100s", "v100-pcie-32gb"},
    {"titan-v", "v100-pcie-16gb"},
    {"rtx-3060", "rtx-3090"},
    {"rtx-3070", "rtx-3090"},
    {"rtx-3080", "rtx-3090"},
    {"rtx-3080-ti", "rtx-3090"},
    {"rtx-3090-ti", "rtx-3090"},
    {"rtx-4060", "rtx-4090"},
    {"rtx-4070", "rtx-4090"},
    {"rtx-4080", "rtx-4090"},
    {"rtx-5080", "rtx-4090"},
    {"rtx-a4000", "rtx-3090"},
    {"rtx-a5000", "rtx-3090"},
    {"a2", "t4"},
    {"a16", "t4"},
    {"a800", "a100-sxm4-80gb"},
    {"h800", "h100-sxm5-80gb"},
    {"h20", "h100-sxm5-80gb"},
    {"h200-nvl", "h200-sxm-141gb"},
    {"gh200", "h200-sxm-141gb"},
    {"b100", "b200-sxm-180gb"},
    {"gb300", "gb200-186gb"},
    {"mi100", "v100-pcie-32gb"},
    {"mi210", "a100-pcie-80gb"},
    {"mi250", "a100-sxm4-80gb"},
    {"mi250x", "a100-sxm4-80gb"},
    {"mi300x", "h200-sxm-141gb"},
    {"mi325x", "h200-sxm-141gb"},
    {"tpu-v7", "tpu-v5p"},
    {"ironwood", "tpu-v5p"},
    {"m1-ultra", "m2-ultra"},
    {"m3-ultra", "m2-ultra"},
});

constexpr auto aliases_of_clusters = std::to_array<PresetAlias>({
    {"dgx-1", "dgx-1v"},
    {"dgx-1v-32gb", "dgx-1v"},
    {"dgx-1-v100", "dgx-1v"},
    {"dgx-1-p100", "dgx-1p"},
    {"dgx-a100-80gb", "dgx-a100"},
    {"p3dn", "p3dn.24xlarge"},
    {"p4d", "p4d.24xlarge"},
    {"p4de", "p4de.24xlarge"},
    {"p5", "p5.48xlarge"},
    {"p5e", "p5e.48xlarge"},
    {"p5en", "p5en.48xlarge"},
    {"nd96asr-a100-v4", "nd96asr-v4"},
    {"nd96amsr-v4", "nd96amsr-a100-v4"},
    {"nd96isr-v5", "nd96isr-h100-v5"},
    {"v2-8", "tpu-v2-8"},
    {"v3-8", "tpu-v3-8"},
    {"v4-8", "tpu-v4-8"},
    {"v5e-8", "tpu-v5e-8"},
    {"v5litepod-8", "tpu-v5e-8"},
    {"tpu-v5-litepod-8", "tpu-v5e-8"},
    {"v5p-8", "tpu-v5p-8"},
    {"v6e-8", "tpu-v6e-8"},
    {"m2-ultra", "apple-m2-ultra"},
    {"mac-studio", "apple-m2-ultra"},
});

constexpr auto other_clusters = std::to_array<UnmodelledPreset>({
    {"dgx-gh200", "dgx-h200"},
    {"gb300-nvl72", "gb200-nvl72"},
    {"dgx-spark", "cpu"},
    {"dgx-station", "dgx-1v"},
    {"dgx-station-a100", "dgx-a100"},
    {"hgx-a100", "dgx-a100"},
    {"hgx-h100", "dgx-h100"},
    {"hgx-h200", "dgx-h200"},
    {"hgx-b200", "dgx-b200"},
    {"selene", "dgx-a100"},
    {"p2.8xlarge", "g4dn.metal"},
    {"p2.16xlarge", "g4dn.metal"},
    {"p3.2xlarge", "p3.16xlarge"},
    {"p3.8xlarge", "p3.16xlarge"},
    {"p5.4xlarge", "p5.48xlarge"},
    {"p6-b200.48xlarge", "dgx-b200"},
    {"g4dn.xlarge", "g4dn.12xlarge"},
    {"g4dn.2xlarge", "g4dn.12xlarge"},
    {"g4dn.4xlarge", "g4dn.12xlarge"},
    {"g4dn.8xlarge", "g4dn.12xlarge"},
    {"g4dn.16xlarge", "g4dn.12xlarge"},
    {"g5.2xlarge", "g5.xlarge"},
    {"g5.4xlarge", "g5.xlarge"},
    {"g5.8xlarge", "g5.xlarge"},
    {"g5.16xlarge", "g5.xlarge"},
    {"g5.24xlarge", "g5.12xlarge"},
    {"g6.xlarge", "g6.48xlarge"},
    {"g6.12xlarge", "g6.48xlarge"},
    {"g6.24xlarge", "g6.48xlarge"},
    {"g6e.xlarge", "g6e.48xlarge"},
    {"g6e.12xlarge", "g6e.48xlarge"},
    {"g6e.24xlarge", "g6e.48xlarge"},
    {"trn1.32xlarge", "p4d.24xlarge"},
    {"trn2.48xlarge", "p5.48xlarge"},
    {"dl1.24xlarge", "p4d.24xlarge"},
    {"a2-highgpu-1g", "a2-highgpu-8g"},
    {"a2-highgpu-2g", "a2-highgpu-8g"},
    {"a2-highgpu-4g", "a2-highgpu-8g"},
    {"a2-megagpu-16g", "a2-highgpu-8g"},
    {"a2-ultragpu-1g", "a2-ultragpu-8g"},
    {"a2-ultragpu-2g", "a2-ultragpu-8g"},
    {"a2-ultragpu-4g", "a2-ultragpu-8g"},
    {"a3-highgpu-1g", "a3-highgpu-8g"},
    {"a3-highgpu-2g", "a3-highgpu-8g"},
    {"a3-highgpu-4g", "a3-highgpu-8g"},
    {"a3-edgegpu-8g", "a3-highgpu-8g"},
    {"a3-ultragpu-8g", "dgx-h200"},
    {"a4-highgpu-8g", "dgx-b200"},
    {"g2-standard-96", "g6.48xlarge"},
    {"nc24rs-v3", "p3.16xlarge"},
    {"nc96ads-a100-v4", "nd96amsr-a100-v4"},
    {"nd40rs-v2", "p3dn.24xlarge"},
    {"nd96isr-h200-v5", "dgx-h200"},
    {"nd-gb200-v6", "gb200-nvl72"},
    {"tpu-v7-8", "tpu-v5p-8"},
    {"apple-m1-ultra", "apple-m2-ultra"},
    {"apple-m2-max", "apple-m2-ultra"},
    {"apple-m3-ultra", "apple-m2-ultra"},
});

// By device; any other GPU is assumed in the machine that is assumed without one.
constexpr auto usual_clusters = std::to_array<PresetAlias>({
    {"p100-sxm2-16gb", "dgx-1p"},
    {"p100-pcie-16gb", "dgx-1p"},
    {"p40", "g4dn.metal"},
    {"v100-sxm2-16gb", "dgx-1v-16gb"},
    {"v100-sxm2-32gb", "dgx-1v"},
    {"v100-pcie-16gb", "dgx-1v-16gb"},
    {"v100-pcie-32gb", "dgx-1v"},
    {"t4", "g4dn.metal"},
    {"a100-sxm4-40gb", "dgx-a100-40gb"},
    {"a100-sxm4-80gb", "dgx-a100"},
    {"a100-pcie-40gb", "dgx-a100-40gb"},
    {"a100-pcie-80gb", "dgx-a100"},
    {"a30", "g5.48xlarge"},
    {"a10", "g5.48xlarge"},
    {"a40", "g5.48xlarge"},
    {"a6000", "workstation-2x3090"},
    {"l40", "g6e.48xlarge"},
    {"rtx-6000-ada", "workstation-4x4090"},
    {"rtx-5090", "workstation-4x4090"},
    {"titan-rtx", "workstation-2x3090"},
    {"quadro-rtx-8000", "workstation-2x3090"},
    {"h100-nvl-94gb", "dgx-h100"},
    {"b300-sxm-288gb", "dgx-b300"},
    {"a10g", "g5.48xlarge"},
    {"rtx-3090", "workstation-2x3090"},
    {"l4", "g6.48xlarge"},
    {"l40s", "g6e.48xlarge"},
    {"rtx-4090", "workstation-4x4090"},
    {"h100-sxm5-80gb", "dgx-h100"},
    {"h100-pcie-80gb", "dgx-h100"},
    {"h200-sxm-141gb", "dgx-h200"},
    {"b200-sxm-180gb", "dgx-b200"},
    {"gb200-186gb", "gb200-nvl72"},
    {"rtx-2080-ti", "workstation-2x3090"},
    {"tpu-v2-core", "tpu-v2-8"},
    {"tpu-v3-core", "tpu-v3-8"},
    {"tpu-v4", "tpu-v4-8"},
    {"tpu-v5e", "tpu-v5e-8"},
    {"tpu-v5p", "tpu-v5p-8"},
    {"tpu-v6e", "tpu-v6e-8"},
    {"m2-ultra", "apple-m2-ultra"},
    {"cpu", "dgx-h100"},
});

template <class Model>
std::vector<std::string> names_of(const std::vector<Model>& models) {
  std::vector<std::string> names;
  names.reserve(models.size());
  for (const Model& model : models) {
    names.push_back(model.name);
  }
  return names;
}

PresetAnswer find(std::string_view asked, const std::vector<std::string>& names,
                  std::span<const PresetAlias> aliases,
                  std::span<const UnmodelledPreset> unmodelled) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return find_preset_name(asked, views, aliases, unmodelled);
}

std::vector<std::string> spellings(std::vector<std::string> names,
                                   std::span<const PresetAlias> aliases,
                                   std::span<const UnmodelledPreset> unmodelled) {
  for (const PresetAlias& alias : aliases) {
    names.emplace_back(alias.alias);
  }
  for (const UnmodelledPreset& other : unmodelled) {
    names.emplace_back(other.name);
  }
  return names;
}

}  // namespace

std::span<const PresetAlias> device_aliases() { return aliases_of_devices; }
std::span<const PresetAlias> cluster_aliases() { return aliases_of_clusters; }
std::span<const UnmodelledPreset> unmodelled_devices() { return other_devices; }
std::span<const UnmodelledPreset> unmodelled_clusters() { return other_clusters; }

PresetAnswer find_device_name(std::string_view asked) {
  return find(asked, names_of(device_presets()), aliases_of_devices, other_devices);
}

PresetAnswer find_cluster_name(std::string_view asked) {
  return find(asked, names_of(cluster_presets()), aliases_of_clusters, other_clusters);
}

std::vector<std::string> device_spellings() {
  return spellings(names_of(device_presets()), aliases_of_devices, other_devices);
}

std::vector<std::string> cluster_spellings() {
  return spellings(names_of(cluster_presets()), aliases_of_clusters, other_clusters);
}

std::string_view usual_cluster_of(std::string_view device) {
  const auto* const found = std::ranges::find(usual_clusters, device, &PresetAlias::alias);
  ensure(found != usual_clusters.end(), "every GPU has a usual machine");
  return found->name;
}

}  // namespace lockstep
