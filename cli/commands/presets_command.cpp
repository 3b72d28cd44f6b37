// `presets`: the devices, nodes and networks that scenarios may name, with figures and sources.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/commands/commands.hpp"
#include "cli/render/json.hpp"
#include "model/cluster/list_prices.hpp"
#include "model/cluster/presets.hpp"
#include "model/network/mixture.hpp"
#include "model/network/presets.hpp"

namespace lockstep::cli {

namespace {

std::string in_gibibytes(Bytes bytes) {
  return fmt::format("{:g} GiB", static_cast<double>(bytes.count()) / 1073741824.0);
}

std::string in_gigabytes(BytesPerSecond rate) {
  return fmt::format("{:g} GB/s", static_cast<double>(rate.count()) * 1e-9);
}

std::string with_source(std::string line, const std::string& source) {
  return source.empty() ? line + "\n" : fmt::format("{}\n      {}\n", line, source);
}

std::string devices_text() {
  std::string out =
      "Devices (cluster.gpu.preset): memory and its bandwidth, peaks without sparsity\n";
  for (const DeviceModel& device : device_presets()) {
    std::string peaks;
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      if (const auto& speed = device.speeds[static_cast<size_t>(dtype)]) {
        peaks += fmt::format(", {} {:g} TFLOP/s", name_of(dtype),
                             static_cast<double>(speed->peak.count()) * 1e-12);
      }
    }
    out += with_source(fmt::format("  {:<20} {}, {}{}", device.name, in_gibibytes(device.memory),
                                   in_gigabytes(device.memory_bandwidth), peaks),
                       device.source);
  }
  return out;
}

std::string nodes_text() {
  std::string out = "Nodes (cluster.preset): one each, cluster.nodes adds more\n";
  for (const Cluster& cluster : cluster_presets()) {
    const NodeModel& node = cluster.node;
    std::string line = fmt::format("  {:<20} {} x {}, PCIe {}", cluster.name, node.devices,
                                   node.device.name, in_gigabytes(node.pcie));
    if (node.nvlink.count() > 0) {
      line += fmt::format(", NVLink {}", in_gigabytes(node.nvlink));
    }
    if (node.chip_links.links > 0) {
      line += fmt::format(", {} x {} between chips", node.chip_links.links,
                          in_gigabytes(node.chip_links.rate));
    }
    if (node.nics > 0) {
      line += fmt::format(", {} x {} between nodes", node.nics,
                          in_gigabytes(cluster.network.bandwidth));
    }
    if (const std::optional<ListPrice> price = list_price_of(cluster.name)) {
      line += fmt::format(", {:g} USD/h ({}; {})", price->usd_per_node_hour, price->terms,
                          price->source);
    }
    out += with_source(std::move(line), node.source);
  }
  return out;
}

std::string in_flops(int64_t flops) {
  constexpr int64_t giga = 1'000'000'000;
  const auto count = static_cast<double>(flops);
  return flops >= 1000 * giga ? fmt::format("{:.5g} TFLOP", count * 1e-12)
         : flops >= giga      ? fmt::format("{:.4g} GFLOP", count * 1e-9)
                              : fmt::format("{} FLOP", flops);
}

/// A preset network as it is without arguments.
struct PresetFigures {
  Shape input;
  int64_t parameters = 0;
  int64_t active_parameters = 0;  ///< that one token passes through
  int64_t forward_flops = 0;
};

PresetFigures figures_of(const NetworkPreset& preset) {
  const auto described = describe_preset(preset.name);
  const BuildResult built = build_network(std::get<NetworkDescription>(described));
  return {built.network.input, built.network.parameter_elements(),
          active_parameter_elements(built.network), built.network.forward_flops().count()};
}

/// Of a mixture of experts.
std::string active_text(const PresetFigures& figures) {
  return figures.active_parameters == figures.parameters
             ? ""
             : fmt::format(" ({} active)", figures.active_parameters);
}

std::string networks_text() {
  std::string out =
      "Networks (model.preset): parameters, and FLOP of one sample's forward (a multiply-add is "
      "2)\n";
  for (const NetworkPreset& preset : network_presets()) {
    const PresetFigures figures = figures_of(preset);
    out += with_source(
        fmt::format("  {:<20} {} parameters{}, {}, sample {}, takes {}", preset.name,
                    figures.parameters, active_text(figures), in_flops(figures.forward_flops),
                    lockstep::text_of(figures.input), fmt::join(preset.arguments, " ")),
        std::string(preset.source));
  }
  return out;
}

Json devices_json() {
  Json list = Json::array();
  for (const DeviceModel& device : device_presets()) {
    Json peaks = Json::object();
    for (const DType dtype : {DType::fp64, DType::fp32, DType::fp16, DType::bf16}) {
      if (const auto& speed = device.speeds[static_cast<size_t>(dtype)]) {
        peaks[std::string(name_of(dtype))] = speed->peak.count();
      }
    }
    list.push_back({{"name", device.name},
                    {"type", torch_name_of(device.type)},
                    {"memory_bytes", device.memory.count()},
                    {"memory_bandwidth_bytes_per_s", device.memory_bandwidth.count()},
                    {"peak_flops_per_s", peaks},
                    {"source", device.source},
                    {"assumption", device.assumption}});
  }
  return list;
}

Json nodes_json() {
  Json list = Json::array();
  for (const Cluster& cluster : cluster_presets()) {
    const NodeModel& node = cluster.node;
    const std::optional<ListPrice> price = list_price_of(cluster.name);
    list.push_back({{"name", cluster.name},
                    {"devices", node.devices},
                    {"device", node.device.name},
                    {"nvlink_bytes_per_s", node.nvlink.count()},
                    {"chip_links", node.chip_links.links},
                    {"chip_link_bytes_per_s", node.chip_links.rate.count()},
                    {"pcie_bytes_per_s", node.pcie.count()},
                    {"nics", node.nics},
                    {"nic_bytes_per_s", node.nics > 0 ? cluster.network.bandwidth.count() : 0},
                    {"cpu_cores", node.cpu_cores},
                    {"memory_bytes", node.memory.count()},
                    {"usd_per_hour", price ? Json(price->usd_per_node_hour) : Json()},
                    {"price_source",
                     price ? Json(fmt::format("{}; {}", price->terms, price->source)) : Json()},
                    {"source", node.source},
                    {"assumption", node.assumption}});
  }
  return list;
}

Json networks_json() {
  Json list = Json::array();
  for (const NetworkPreset& preset : network_presets()) {
    const PresetFigures figures = figures_of(preset);
    list.push_back({{"name", preset.name},
                    {"summary", preset.summary},
                    {"parameters", figures.parameters},
                    {"active_parameters", figures.active_parameters},
                    {"forward_flops", figures.forward_flops},
                    {"input", figures.input},
                    {"arguments", preset.arguments},
                    {"source", preset.source}});
  }
  return list;
}

struct PresetGroup {
  std::string_view name;
  std::string (*text)();
  Json (*json)();
};
constexpr PresetGroup groups[] = {{"devices", devices_text, devices_json},
                                  {"nodes", nodes_text, nodes_json},
                                  {"networks", networks_text, networks_json}};

}  // namespace

Answer presets_command(const Request& request) {
  const std::string asked = request.arguments.empty() ? "" : request.arguments.front();
  if (!asked.empty() && std::ranges::count(groups, asked, &PresetGroup::name) == 0) {
    return {
        "",
        fmt::format("error: there are no presets of `{}`\n   = expected one of: devices, nodes, "
                    "networks\n",
                    asked),
        ExitCode::usage};
  }
  Json json{{"schema_version", schema_version}, {"command", "presets"}};
  std::string text;
  for (const PresetGroup& group : groups) {
    if (!asked.empty() && group.name != asked) {
      continue;
    }
    if (request.format == Format::json) {
      json[std::string(group.name)] = group.json();
    } else {
      text += fmt::format("{}{}", text.empty() ? "" : "\n", group.text());
    }
  }
  return {request.format == Format::json ? lockstep::cli::text_of(json) : text, "", ExitCode::ok};
}

}  // namespace lockstep::cli
