#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/scenario/forms/preset_form.hpp"
#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

struct FlopsForm : FormWithoutWords {
  static constexpr std::string_view type = "map dtype: flops/s, or `achieved`: flops/s";
  static std::optional<std::vector<DeviceFlops>> read(Reader& reader, const Node& node,
                                                      const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {bf16: 312 TFLOP/s}");
      return std::nullopt;
    }
    const std::vector<std::string_view> legal = {"fp64", "fp32", "tf32",    "bf16",
                                                 "fp16", "int8", "achieved"};
    std::vector<DeviceFlops> rates;
    for (const Entry& entry : node.entries) {
      if (std::find(legal.begin(), legal.end(), entry.key) == legal.end()) {
        fail_unknown_key(reader, entry, "cluster.gpu.flops", legal);
        continue;
      }
      if (entry.value->kind == Node::Kind::null) {
        continue;
      }
      KeyRow one = row;
      one.key = entry.key;
      if (const auto rate = FlopsRateForm::read(reader, *entry.value, one)) {
        rates.push_back({entry.key, *rate, reader.place(entry.mark)});
      }
    }
    return rates;
  }
};

/// A time that may be years, in seconds.
struct LongTimeForm : FormWithoutWords {
  static constexpr std::string_view type = TimeForm::type;
  static std::optional<double> read(Reader& reader, const Node& node, const KeyRow& row) {
    struct Unit {
      std::string_view name;
      double in_seconds;
    };
    constexpr double day = 86'400;
    constexpr Unit units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", day}, {"y", 365 * day}};
    if (node.kind != Node::Kind::scalar) {
      reader.fail_type(node, row.key, "a time", "write 30 d, or 2 y");
      return std::nullopt;
    }
    const size_t space = node.text.find(' ');
    const auto number = parse_float(node.text.substr(0, space));
    const std::string unit = space == std::string::npos ? "" : node.text.substr(space + 1);
    const auto* const found = std::ranges::find(units, unit, &Unit::name);
    const double* const value = std::get_if<double>(&number);
    if (value == nullptr || found == std::end(units) || !(*value > 0) || !std::isfinite(*value)) {
      reader.fail(
          node.mark,
          fmt::format("`{}` takes a time of s, min, h, d or y, not `{}`", row.key, node.text),
          "write 30 d, or 2 y");
      return std::nullopt;
    }
    return *value * found->in_seconds;
  }
};

/// Three capital letters, as ISO 4217 writes currencies.
struct CurrencyForm : FormWithoutWords {
  static constexpr std::string_view type = TextForm::type;
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row) {
    const bool is_code =
        node.kind == Node::Kind::scalar && node.text.size() == 3 &&
        std::ranges::all_of(node.text, [](char letter) { return letter >= 'A' && letter <= 'Z'; });
    if (!is_code) {
      reader.fail(node.mark,
                  fmt::format("`{}` takes the three capital letters of a currency", row.key),
                  "write USD or EUR");
      return std::nullopt;
    }
    return node.text;
  }
};

/// A price without an amount says nothing.
struct PriceForm : FormWithoutWords {
  static constexpr std::string_view type = "map";
  static std::optional<PriceSpec> read(Reader& reader, const Node& node, const KeyRow& row) {
    std::optional<PriceSpec> price = TableForm<PriceSpec, price_table>::read(reader, node, row);
    const bool names_amount =
        node.kind == Node::Kind::map &&
        std::ranges::any_of(node.entries, [](const Entry& entry) { return entry.key == "amount"; });
    if (price && !names_amount) {
      reader.fail(node.mark, "`price` needs an `amount`",
                  "write {amount: 2.5, currency: USD, per: gpu_hour}");
      return std::nullopt;
    }
    return price;
  }
};

/// The name of a preset, or a map that may name one.
struct GpuForm : FormWithoutWords {
  static constexpr std::string_view type = "preset name, or map";
  static std::optional<GpuSpec> read(Reader& reader, const Node& node, const KeyRow& row) {
    if (node.kind == Node::Kind::map) {
      return TableForm<GpuSpec, gpu_table>::read(reader, node, row);
    }
    const auto preset = DevicePresetForm::read(reader, node, row);
    if (!preset) {
      return std::nullopt;
    }
    GpuSpec gpu;
    gpu.preset = {*preset, reader.place(node)};
    gpu.place = reader.place(node);
    return gpu;
  }
};

}  // namespace

Table<GpuSpec> gpu_table() {
  return {"cluster.gpu",
          {
              field<&GpuSpec::preset, DevicePresetForm>(
                  {"preset", "the cluster's", "a GPU of `lockstep explain presets`"}),
              field<&GpuSpec::memory>({"memory", "preset's", "device memory"}),
              field<&GpuSpec::memory_bandwidth>(
                  {"memory_bandwidth", "preset's", "of device memory", 1}),
              field<&GpuSpec::flops, FlopsForm>(
                  {"flops", "preset's", "peak by dtype; `achieved` is one rate, taken as it is"}),
          }};
}

Table<NetworkSpec> network_table() {
  return {
      "cluster.network",
      {
          field<&NetworkSpec::bandwidth>({"bandwidth", "preset's", "of one NIC, one direction", 1}),
          field<&NetworkSpec::latency>({"latency", "preset's", "one way, between two nodes"}),
          field<&NetworkSpec::oversubscription>(
              {"oversubscription", "1", "bandwidth of the edge divided by that of the core", 1,
               1e6}),
          field<&NetworkSpec::fabric>({"fabric", "preset's", "how NICs carry NCCL's messages"}),
      }};
}

Table<DriveSpec> nvme_table() {
  return {"cluster.nvme",
          {
              field<&DriveSpec::size>({"size", "preset's", "of each node; its ranks share it"}),
              field<&DriveSpec::read>({"read", "preset's", "reading rate of each node", 1}),
              field<&DriveSpec::write>({"write", "preset's", "writing rate of each node", 1}),
              field<&DriveSpec::latency>({"latency", "100 us", "of each request"}),
          }};
}

Table<PriceSpec> price_table() {
  return {"cluster.price",
          {
              field<&PriceSpec::amount>({"amount", "", "of an hour", 0, 1e9}),
              field<&PriceSpec::currency, CurrencyForm>(
                  {"currency", "USD", "three letters: USD, EUR, .."}),
              field<&PriceSpec::per>(
                  {"per", "node_hour", "what is paid for: whole nodes, or the GPUs that train"}),
          }};
}

Table<ClusterSpec> cluster_table() {
  return {
      "cluster",
      {
          field<&ClusterSpec::preset, ClusterPresetForm>(
              {"preset", "", "a machine of `lockstep explain presets`"}),
          field<&ClusterSpec::nodes>(
              {"nodes", "`trainer.num_nodes`", "fewer than `num_nodes` is LS501", 1, ranks_limit}),
          field<&ClusterSpec::gpu, GpuForm>(
              in_table({"gpu", "preset's", "the GPU of every node"}, "cluster.gpu")),
          field<&ClusterSpec::gpus>({"gpus", "preset's", "in each node", 0, 1024}),
          field<&ClusterSpec::occupied>(
              {"occupied", "[]", "GPUs that other processes hold (exclusive mode)", 0, 1023}),
          field<&ClusterSpec::nvlink>(
              {"nvlink", "preset's",
               "of one GPU, one direction: half of a data sheet's \"bidirectional\"; 0 = none"}),
          field<&ClusterSpec::pcie>({"pcie", "preset's", "of one GPU, one direction", 1}),
          field<&ClusterSpec::nics>({"nics", "preset's", "in each node", 0, 1024}),
          field<&ClusterSpec::network, TableForm<NetworkSpec, network_table>>(
              in_table({"network", "preset's", "between nodes"}, "cluster.network")),
          field<&ClusterSpec::cpu_cores>({"cpu_cores", "preset's", "of each node", 1, 1e5}),
          field<&ClusterSpec::memory>(
              {"memory", "preset's", "host memory of each node, which its ranks share"}),
          field<&ClusterSpec::disk>({"disk", "preset's", "reading rate of each node", 1}),
          field<&ClusterSpec::nvme, TableForm<DriveSpec, nvme_table>>(in_table(
              {"nvme", "preset's", "local storage, to which DeepSpeed offloads"}, "cluster.nvme")),
          field<&ClusterSpec::mtbf, LongTimeForm>(
              {"mtbf", "none fails", "mean time between failures of a node"}),
          field<&ClusterSpec::price, PriceForm>(in_table(
              {"price", "preset's list price", "of an hour; without one nothing is said of cost"},
              "cluster.price")),
          field<&ClusterSpec::start_time>(
              {"start_time", "0", "of a process: imports, model and data, until its trainer runs"}),
          field<&ClusterSpec::ranks>(
              {"ranks", "", "a bare program of that many ranks; not together with `trainer`", 1,
               ranks_limit}),
          field<&ClusterSpec::collectives>(
              {"collectives", "the backend's",
               "which cost model; `ring` and `tree` use only latency and bandwidth of `network`; "
               "`ring` is used if only `ranks` and `network` are given"}),
          field<&ClusterSpec::nccl_xml, PathForm>(
              {"nccl_xml", "", "topology of a real machine, as NCCL dumps it"}),
          field<&ClusterSpec::nvidia_smi, PathForm>(
              {"nvidia_smi", "", "topology of a real machine: `nvidia-smi topo -m`"}),
          field<&ClusterSpec::calibration, PathForm>(
              {"calibration", "", "measurements of a real machine, by `lockstep calibrate`"}),
      }};
}

Table<ProcessGroupSpec> process_group_table() {
  return {"process_group",
          {
              field<&ProcessGroupSpec::backend>(
                  {"backend", "from the accelerator", "communication library"}),
              field<&ProcessGroupSpec::timeout>(
                  {"timeout", "of the strategy or torch", "when the watchdog gives up"}),
              field<&ProcessGroupSpec::eager_limit>(
                  {"eager_limit", "0 B for nccl",
                   "sends up to it return before the receive is posted"}),
          }};
}

}  // namespace lockstep
