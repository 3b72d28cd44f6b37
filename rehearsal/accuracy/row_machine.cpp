#include "rehearsal/accuracy/row_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "model/cluster/presets.hpp"
#include "rehearsal/accuracy/row_model.hpp"

namespace lockstep::cli {

namespace {

/// A GPU by a part of its name in lower case without blanks, `-` and `_`; the first that fits.
struct NamedGpu {
  std::string_view part;
  std::string_view gpu;  ///< a preset
};

constexpr NamedGpu gpus_by_name[] = {{"v10016gb", "v100-sxm2-16gb"},
                                     {"v10032gb", "v100-sxm2-32gb"},
                                     {"v100(dgx)", "v100-sxm2-32gb"},
                                     {"v100", "v100-sxm2-16gb"},
                                     {"a100pcie40gb", "a100-pcie-40gb"},
                                     {"a10040gbpcie", "a100-pcie-40gb"},
                                     {"a100pcie80gb", "a100-pcie-80gb"},
                                     {"a10080gbpcie", "a100-pcie-80gb"},
                                     {"a100sxm40gb", "a100-sxm4-40gb"},
                                     {"a100sxm440gb", "a100-sxm4-40gb"},
                                     {"a10040gb", "a100-sxm4-40gb"},
                                     {"a100", "a100-sxm4-80gb"},
                                     {"h100pcie", "h100-pcie-80gb"},
                                     {"h100nvl", "h100-nvl-94gb"},
                                     {"h100", "h100-sxm5-80gb"},
                                     {"h200", "h200-sxm-141gb"},
                                     {"gb200", "gb200-186gb"},
                                     {"b200", "b200-sxm-180gb"},
                                     {"rtx3090", "rtx-3090"},
                                     {"rtx4090", "rtx-4090"},
                                     {"quadrortx8000", "quadro-rtx-8000"},
                                     {"titanrtx", "titan-rtx"},
                                     {"p100", "p100-sxm2-16gb"},
                                     {"p40", "p40"},
                                     {"a6000", "a6000"},
                                     {"l40s", "l40s"},
                                     {"l40", "l40"},
                                     {"l4", "l4"},
                                     {"a30", "a30"},
                                     {"a10g", "a10g"},
                                     {"a10", "a10"},
                                     {"t4", "t4"}};

std::string squeezed(const std::string& name) {
  std::string text = lower_case(name);
  std::erase_if(text, [](char letter) { return letter == ' ' || letter == '-' || letter == '_'; });
  return text;
}

/// NICs and the rate of each, in Gb/s, where the row states them.
std::string network_of(const ThroughputRow& row) {
  const std::string text = row.text("interconnect");
  std::smatch match;
  // "4x100 Gb/s", "8x 200 Gb/s", "4 Omni-Path links ..; 100 Gb/s"
  static const std::regex several(
      R"((\d+)\s*x\s*[A-Za-z0-9 \-]*?(\d+)\s*G(?:b/s|b/Sec|bE|be|b/sec))");
  static const std::regex one(R"((\d+)\s*G(?:b/s|b/Sec|be|bE))");
  int64_t nics = 1;
  int64_t gigabits = 0;
  if (std::regex_search(text, match, several)) {
    nics = std::stol(match[1]);
    gigabits = std::stol(match[2]);
  } else if (std::regex_search(text, match, one)) {
    gigabits = std::stol(match[1]);
    if (contains(text, "per GPU")) {
      nics = 8;
    }
  }
  if (gigabits >= 800) {  // the sum of a node's NICs, as MosaicML and ZeRO print it
    nics = 8;
    gigabits /= 8;
  }
  if (gigabits == 0) {
    return "";
  }
  const bool is_tcp = contains(text, "TCP") || contains(text, "Ethernet");
  return fmt::format(", nics: {}, network: {{bandwidth: {} MB/s{}}}", nics, gigabits * 125,
                     is_tcp ? ", fabric: tcp" : "");
}

}  // namespace

RowMachine machine_of_row(const ThroughputRow& row) {
  RowMachine machine;
  machine.gpu = row.text("gpu");
  const std::string name = squeezed(row.text("gpu"));
  const auto* const found = std::ranges::find_if(
      gpus_by_name, [&](const NamedGpu& each) { return contains(name, each.part); });
  if (found == std::end(gpus_by_name)) {
    machine.why_not =
        contains(name, "notstated") ? "the GPU is not stated" : "the GPU is not a preset";
    return machine;
  }
  machine.gpus = row.whole("gpus").value_or(1);
  machine.nodes = row.whole("nodes").value_or(machine.gpus <= 8 ? 1 : (machine.gpus + 7) / 8);
  if (machine.gpus % machine.nodes != 0) {
    machine.why_not = "the GPUs are not the same number on every node";
    return machine;
  }
  machine.gpu = found->gpu;
  const int64_t each = machine.gpus / machine.nodes;
  const bool is_dgx_2 = contains(lower_case(row.text("system")), "dgx-2") || each == 16;
  // What was measured did fit: a prediction of memory must not stop that of the time.
  constexpr std::string_view no_limit = "memory: 4 TiB";
  const bool takes_dgx_2 = is_dgx_2 && contains(name, "v100");
  std::string base = takes_dgx_2 ? fmt::format("preset: dgx-2, gpu: {{{}}}", no_limit)
                                 : fmt::format("gpu: {{preset: {}, {}}}", found->gpu, no_limit);
  if (!is_dgx_2 && each > cluster_preset(usual_cluster_of(found->gpu))->node.devices) {
    base += fmt::format(", gpus: {}", each);
  }
  machine.yaml =
      fmt::format("{}, nodes: {}{}", base, machine.nodes, machine.nodes > 1 ? network_of(row) : "");
  return machine;
}

std::string software_of(const ThroughputRow& row) {
  const std::string name = lower_case(row.text("framework"));
  struct Software {
    std::string_view part;
    std::string_view profile;
  };
  // In this order: "NGC MXNet .., NGC PyTorch .." of MLPerf lists what a vendor submitted. The
  // tables of llm-foundry are older than its use of torch 2, so nothing in them is compiled (its
  // benchmarking/README.md: "Update tables with torch 2.0"); attention, norms and losses are
  // kernels of its own. So are those of whyNLP/tinyllama (README: TINY_FUSED_*).
  constexpr Software all[] = {
      {"llm.c", "fused"},        {"compile", "compiled"},  {"nightly", "compiled"},
      {"megascale", "megatron"}, {"megatron", "megatron"}, {"libai", "graph"},
      {"oneflow", "graph"},      {"nemo", "megatron"},     {"nanotron", "megatron"},
      {"zero-100b", "megatron"}, {"tinyllama", "fused"},   {"deepspeed", "deepspeed"},
      {"foundry", "fused"},      {"tensorflow", "graph"},  {"paddle", "graph"},
      {"bagua", "pytorch"},      {"byteps", "pytorch"}};
  if (row.source == "mlperf_v30_resnet") {
    return "graph";  // NVIDIA's code for MXNet, with fused convolutions
  }
  if (row.source == "mlperf_v30_bert") {
    return "fused";  // NVIDIA's code for PyTorch, with APEX
  }
  if (row.source == "dle_pt_bert_large" || contains(name, "ngc pytorch")) {
    return contains(lower_case(row.text("model")), "bert") ? "fused" : "pytorch";
  }
  if (contains(name, "mxnet")) {
    return "graph";
  }
  const auto* const found =
      std::ranges::find_if(all, [&](const Software& each) { return contains(name, each.part); });
  return found == std::end(all) ? "pytorch" : std::string(found->profile);
}

}  // namespace lockstep::cli
