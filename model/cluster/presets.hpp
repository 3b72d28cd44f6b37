#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.hpp"

namespace lockstep {

/// V100 SXM2, A100 SXM4, H100 SXM5 and `cpu`; each figure's source is in the model.
std::vector<DeviceModel> device_presets();
std::optional<DeviceModel> device_preset(std::string_view name);

/// One node each: dgx-1v, dgx-1v-16gb, dgx-a100, dgx-a100-40gb, dgx-h100, and `cpu` for runs over
/// Gloo on one host.
std::vector<Cluster> cluster_presets();
std::optional<Cluster> cluster_preset(std::string_view name);

/// Ranks that have nothing but a network: each is alone on its node with one NIC, every pair is one
/// `latency` and one `bandwidth` apart. For bare programs, whose compute has explicit times.
Cluster flat_cluster(int ranks, BytesPerSecond bandwidth, Time latency);

}  // namespace lockstep
