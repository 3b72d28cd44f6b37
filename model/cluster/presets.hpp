#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/core/preset_name.hpp"

namespace lockstep {

/// GPUs, TPUs, and `cpu`; each figure's source is in the model.
const std::vector<DeviceModel>& device_presets();
/// By its exact name; find_device_name knows what else people write.
std::optional<DeviceModel> device_preset(std::string_view name);
/// Whether this GPU has NVLink. Cards are taken without a bridge.
bool has_nvlink(std::string_view device);

/// One node each: DGX machines, machines of clouds, and `cpu` for runs over Gloo on one host.
const std::vector<Cluster>& cluster_presets();
/// By its exact name; find_cluster_name knows what else people write.
std::optional<Cluster> cluster_preset(std::string_view name);
/// The preset of the machine that is assumed around a GPU where a scenario names only the GPU.
/// Ensures that the GPU is a preset.
std::string_view usual_cluster_of(std::string_view device);

/// What people call GPUs and machines: other spellings, short forms, and what is not modelled.
PresetAnswer find_device_name(std::string_view asked);
PresetAnswer find_cluster_name(std::string_view asked);
/// All spellings that these know, names first: for "did you mean".
std::vector<std::string> device_spellings();
std::vector<std::string> cluster_spellings();
/// Spellings that stand for each name, by name.
std::span<const PresetAlias> device_aliases();
std::span<const PresetAlias> cluster_aliases();
std::span<const UnmodelledPreset> unmodelled_devices();
std::span<const UnmodelledPreset> unmodelled_clusters();

/// Ranks that have nothing but a network: each is alone on its node with one NIC, every pair is one
/// `latency` and one `bandwidth` apart. For bare programs, whose compute has explicit times.
Cluster flat_cluster(int ranks, BytesPerSecond bandwidth, Time latency);

}  // namespace lockstep
