#include "explain/explain_presets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "explain/key_examples.hpp"
#include "model/cluster/list_prices.hpp"
#include "model/cluster/presets.hpp"
#include "model/network/accounting.hpp"
#include "model/network/presets.hpp"

namespace lockstep::cli {

namespace {

std::string gigabytes_per_second(BytesPerSecond rate) {
  return fmt::format("{:g} GB/s", static_cast<double>(rate.count()) * 1e-9);
}

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:g} GiB", static_cast<double>(bytes.count()) / 1073741824.0);
}

void add_origin(const std::string& source, const std::string& assumption, KeyPage& page) {
  if (!source.empty()) {
    page.facts.push_back("source: " + source);
  }
  if (!assumption.empty()) {
    page.facts.push_back("assumed: " + assumption);
  }
}

std::vector<std::string> figures_of(const DeviceModel& device) {
  std::vector<std::string> figures{fmt::format("memory {}, {}", gibibytes(device.memory),
                                               gigabytes_per_second(device.memory_bandwidth))};
  std::vector<std::string> peaks;
  const auto add = [&](std::string_view type, const std::optional<ComputeSpeed>& speed) {
    if (speed) {
      peaks.push_back(
          fmt::format("{} {:g}", type, static_cast<double>(speed->peak.count()) * 1e-12));
    }
  };
  for (const DType dtype : {DType::fp64, DType::fp32, DType::fp16, DType::bf16}) {
    add(name_of(dtype), device.speeds[static_cast<size_t>(dtype)]);
  }
  add("tf32", device.tf32);
  figures.push_back(fmt::format("peak TFLOP/s without sparsity: {}", fmt::join(peaks, ", ")));
  if (device.compute_capability > 0) {
    figures.push_back(fmt::format("CUDA compute capability {}.{}", device.compute_capability / 10,
                                  device.compute_capability % 10));
  }
  return figures;
}

/// As `accelerator` of a Trainer names it.
std::string_view accelerator_of(const DeviceModel& device) {
  switch (device.type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "gpu";
    case DeviceType::tpu: return "tpu";
    case DeviceType::mps: return "mps";
  }
  return "";
}

KeyPage page_of_device(const DeviceModel& device) {
  KeyPage page;
  page.name = device.name;
  page.meaning = fmt::format("a {} (cluster.gpu.preset)", word_for(device.type));
  page.facts = figures_of(device);
  add_origin(device.source, device.assumption, page);
  page.scenario = scenario_with(
      fmt::format("cluster: {{nodes: 1, gpu: {{preset: {}}}}}\n"
                  "trainer: {{accelerator: {}, devices: 1, max_epochs: 1}}",
                  device.name, device.is_accelerator() ? accelerator_of(device) : "gpu"));
  return page;
}

std::string_view linked_by(const NodeModel& node) {
  return node.nvlink_pairs.empty() ? "through NVSwitch" : "over direct links";
}

std::string links_text(const NodeModel& node) {
  const std::string pcie = gigabytes_per_second(node.pcie);
  if (node.chip_links.links > 0) {
    return fmt::format(
        "{} links between chips of {} for each direction, which join all nodes; PCIe {}",
        node.chip_links.links, gigabytes_per_second(node.chip_links.rate), pcie);
  }
  return node.nvlink.count() > 0
             ? fmt::format("NVLink {} for a GPU and direction, {}; PCIe {}",
                           gigabytes_per_second(node.nvlink), linked_by(node), pcie)
             : fmt::format("no NVLink; PCIe {} for a GPU and direction", pcie);
}

std::vector<std::string> figures_of(const Cluster& cluster) {
  const NodeModel& node = cluster.node;
  std::vector<std::string> figures{
      fmt::format("a node has {} x {} ({})", node.devices, node.device.name,
                  gibibytes(node.device.memory)),
      links_text(node),
      fmt::format("{} processor cores in {} sockets, {} of memory", node.cpu_cores, node.sockets,
                  gibibytes(node.memory))};
  if (node.nics > 0) {
    figures.push_back(fmt::format("between nodes {} x {}", node.nics,
                                  gigabytes_per_second(cluster.network.bandwidth)));
  }
  if (const std::optional<ListPrice> price = list_price_of(cluster.name)) {
    figures.push_back(fmt::format("list price {:g} USD per hour, {}; {}", price->usd_per_node_hour,
                                  price->terms, price->source));
  }
  return figures;
}

KeyPage page_of_cluster(const Cluster& cluster) {
  const DeviceModel& device = cluster.node.device;
  KeyPage page;
  page.name = cluster.name;
  page.meaning = device.is_accelerator()
                     ? fmt::format("a machine with {}s (cluster.preset)", word_for(device.type))
                     : "ranks on the processors of one machine (cluster.preset)";
  page.facts = figures_of(cluster);
  add_origin(cluster.node.source, cluster.node.assumption, page);
  page.scenario = scenario_with(fmt::format(
      "cluster: {{preset: {}, nodes: 1}}\n"
      "trainer: {{accelerator: {}, devices: {}, max_epochs: 1}}",
      cluster.name, accelerator_of(device),
      device.type == DeviceType::tpu ? cluster.node.devices : std::min(cluster.node.devices, 2)));
  return page;
}

KeyPage page_of_network(const NetworkPreset& preset) {
  KeyPage page;
  page.name = preset.name;
  page.meaning = fmt::format("a model, {} (model.preset)", preset.summary);
  for (const std::string_view argument : preset.arguments) {
    page.keys.push_back({std::string(argument), argument == "dropout" ? "float" : "int", "", ""});
  }
  const auto described = describe_preset(preset.name);
  if (const auto* description = std::get_if<NetworkDescription>(&described)) {
    BuildResult built = build_network(*description);
    account(built.network);
    int64_t parameters = 0;
    Flops forward{};
    for (const Layer& layer : built.network.layers) {
      parameters += layer.parameter_elements();
      forward += layer.work_of(Pass::forward).flops;
    }
    page.facts.push_back(fmt::format("{} parameters; {:.4g} GFLOP in the forward of one sample",
                                     parameters, static_cast<double>(forward.count()) * 1e-9));
    page.facts.push_back(fmt::format("one sample is {}", lockstep::text_of(built.network.input)));
  }
  add_origin(std::string(preset.source), "", page);
  page.scenario = scenario_with(fmt::format("model: {{preset: {}}}", preset.name));
  return page;
}

template <class Presets, class Page>
std::optional<KeyPage> page_of(std::string_view asked, const PresetAnswer& answer,
                               const Presets& presets, std::string_view key, Page page) {
  if (answer.verdict == PresetAnswer::Verdict::unknown) {
    return std::nullopt;
  }
  if (answer.verdict == PresetAnswer::Verdict::not_modelled) {
    KeyPage other;
    other.name = asked;
    other.meaning = fmt::format("exists and is not modelled; the nearest one that is: {} ({})",
                                answer.name, key);
    other.is_modelled = false;
    return other;
  }
  for (const auto& preset : presets) {
    if (preset.name == answer.name) {
      return page(preset);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<KeyPage> find_preset_page(std::string_view name) {
  std::optional<KeyPage> page =
      page_of(name, find_cluster_name(name), cluster_presets(), "cluster.preset", page_of_cluster);
  if (!page) {
    page = page_of(name, find_device_name(name), device_presets(), "cluster.gpu.preset",
                   page_of_device);
  }
  return page ? page
              : page_of(name, find_network_name(name), network_presets(), "model.preset",
                        page_of_network);
}

std::vector<std::string> preset_page_names() {
  std::vector<std::string> names = cluster_spellings();
  std::ranges::move(device_spellings(), std::back_inserter(names));
  std::ranges::move(network_spellings(), std::back_inserter(names));
  return names;
}

}  // namespace lockstep::cli
