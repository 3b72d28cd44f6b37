#include "explain/explain_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "explain/key_examples.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view versions_prefix = "versions.";
constexpr std::string_view fully_shard = "fully_shard";

constexpr const char* deepspeed_facts[] = {
    "0.8.3: a state that is offloaded is updated by DeepSpeedCPUAdam alone (LS501), unless "
    "zero_force_ds_cpu_optimizer is false; from 0.17.6 on also by DeepSpeedCPULion",
    "0.9.2: ZeRO takes Adagrad and DeepSpeedCPUAdagrad without "
    "zero_allow_untested_optimizer; from 0.11.1 on also FusedLion and DeepSpeedCPULion",
    "0.12.4: stages 1 and 2 all_reduce buckets that several ranks own; before, each slice is "
    "reduced to its owner",
    "0.16.8: stage 3 frees what a checkpointed module has gathered with its backward; before, it "
    "stays until the step",
    "0.17.0: the last release in which `enabled: auto` of fp16 and bf16 counts as true",
    "0.19.3: stages 1 and 2 in bf16 agree before each step whether gradients are finite, unless "
    "bf16.check_grad_overflow is false",
    "0.19.7: sections that DeepSpeed has dropped (amp, elasticity, MiCS, ..) are LS501 whatever "
    "they say",
    "keys of a configuration that came later are LS501 in a release that lacks them"};

struct LibraryText {
  std::string_view library;
  std::string_view default_text;
  std::string_view meaning;
  std::string_view lines;  ///< of the example
  std::span<const char* const> facts{};
};

constexpr LibraryText libraries[] = {
    {"lightning", "the newest that supports the scenario",
     "the release of Lightning whose order of hooks, arguments and refusals are followed",
     "versions: {lightning: \"1.9\"}"},
    {"torch", "the newest with which that Lightning was tested",
     "the release of PyTorch whose collectives, wrappers and refusals are followed",
     "versions: {torch: \"2.4\"}"},
    {"torchmetrics", "the newest that supports the scenario",
     "the release of TorchMetrics whose metrics and arguments are followed",
     "versions: {torchmetrics: \"1.4\"}"},
    {"nccl", "the newest that supports the scenario",
     "the release of NCCL whose choices of algorithms are followed", "versions: {nccl: \"2.19\"}"},
    {"deepspeed", "the newest; 0.8.2 below Lightning 2.0",
     "the release of DeepSpeed whose rules are followed",
     "trainer: {accelerator: gpu, devices: 2, strategy: deepspeed_stage_3, max_epochs: 1}\n"
     "versions: {deepspeed: \"0.16.4\"}",
     deepspeed_facts},
};

KeyPage page_of_library(const ModelledVersions& versions, const LibraryText& text) {
  KeyPage page;
  page.name = fmt::format("{}{}", versions_prefix, versions.library);
  page.meaning = text.meaning;
  page.keys.push_back(
      {std::string(versions.library),
       fmt::format("text, \"{}.{}\" to \"{}.{}\"", versions.oldest.major, versions.oldest.minor,
                   versions.newest.major, versions.newest.minor),
       std::string(text.default_text), std::string(text.meaning), std::nullopt});
  page.facts.assign(text.facts.begin(), text.facts.end());
  page.scenario = scenario_with(std::string(text.lines));
  return page;
}

KeyPage page_of_fully_shard() {
  KeyPage page;
  page.name = fully_shard;
  page.meaning =
      "what configure_model calls fully_shard (FSDP2) with: an argument of ModelParallelStrategy "
      "and PipelineStrategy";
  page.keys = {
      {"modules", "list of classes, or `blocks`", "",
       "the modules on which it is called, before it is called on the model: each is a unit",
       ArgumentUse::strategy},
      {"reshard_after_forward", "bool or int", "true for all but the model itself",
       "whether a unit is freed after its forward; N: so many neighbours keep it together",
       ArgumentUse::strategy},
      {"mp_policy", "map", "",
       "types: param_dtype, reduce_dtype, cast_forward_inputs, output_dtype",
       ArgumentUse::strategy},
      {"ignored_params", "list of names", "",
       "classes or layers whose parameters each rank holds whole, and nobody reduces",
       ArgumentUse::strategy},
      {"mesh", "[replicas, shards]", "",
       "shards over the second dimension, and averages gradients over the first",
       ArgumentUse::strategy},
      {"offload_policy", "CPUOffloadPolicy", "", "shards are kept in host memory",
       ArgumentUse::strategy},
      {"shard_placement_fn", "any", "", "along which dimension a parameter is cut",
       ArgumentUse::unmodelled}};
  page.facts = {
      "a rank holds ceil(rows / ranks) rows of each parameter; later ranks may hold fewer or none",
      "a unit is one all_gather in the forward, one more in the backward where it was freed, and "
      "one reduce_scatter of its gradients",
      "the backward gathers the unit before its own ahead; gradients in fp32 and bf16 are averaged "
      "by the collective, those in fp16 divided before and after the sum"};
  page.scenario = scenario_with(
      "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: {ModelParallelStrategy: "
      "{data_parallel_size: 2, tensor_parallel_size: 1, fully_shard: {modules: [Linear], "
      "mp_policy: {param_dtype: bf16, reduce_dtype: fp32}}}}}");
  return page;
}

bool names_fully_shard(std::string_view name) {
  return name == fully_shard || name == "ModelParallelStrategy.fully_shard" ||
         name == "PipelineStrategy.fully_shard";
}

}  // namespace

std::optional<KeyPage> find_argument_page(std::string_view name) {
  if (names_fully_shard(name)) {
    return page_of_fully_shard();
  }
  if (!name.starts_with(versions_prefix)) {
    return std::nullopt;
  }
  const std::string_view library = name.substr(versions_prefix.size());
  const auto text = std::ranges::find(libraries, library, &LibraryText::library);
  const auto versions = modelled_versions();
  const auto known = std::ranges::find(versions, library, &ModelledVersions::library);
  return text == std::end(libraries) || known == versions.end()
             ? std::nullopt
             : std::optional(page_of_library(*known, *text));
}

std::vector<std::string> argument_page_names() {
  std::vector<std::string> names = {std::string(fully_shard)};
  for (const LibraryText& text : libraries) {
    names.push_back(fmt::format("{}{}", versions_prefix, text.library));
  }
  return names;
}

}  // namespace lockstep::cli
