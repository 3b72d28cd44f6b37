#include "io/scenario/names/familiar_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "io/scenario/statements/statement_table.hpp"

namespace lockstep {
namespace {

using FamiliarWord = std::pair<std::string_view, std::string_view>;

constexpr auto words_of_others = std::to_array<FamiliarWord>({
    {"mean", "avg"},
    {"average", "avg"},
    {"prod", "product"},
    {"mul", "product"},
    {"sgd", "SGD"},
    {"learning_rate", "lr"},
    {"gpu_count", "gpus"},
    {"nodes", "num_nodes"},
    {"nnodes", "num_nodes"},
    {"nproc_per_node", "devices"},
    {"n_gpus", "devices"},
    {"num_gpus", "devices"},
    {"epochs", "max_epochs"},
    {"steps", "max_steps"},
    {"dataset_size", "samples"},
    {"train_dataloader", "train"},
    {"val_dataloader", "val"},
    {"val_dataloaders", "val"},
    {"test_dataloader", "test"},
    {"validation", "val"},
    {"isend", "send"},
    {"irecv", "recv"},
    {"reduce_scatter_tensor", "reduce_scatter"},
    {"all_gather_into_tensor", "all_gather"},
    {"all_to_all_single", "all_to_all"},
    {"allreduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"alltoall", "all_to_all"},
    {"offload_param", "offload_parameters"},
    {"offload_params", "offload_parameters"},
});

/// Keys of loaders and optimizers that are looked for in the Trainer.
constexpr auto keys_of_others = std::to_array<FamiliarWord>({
    {"batch_size", "data.train"},
    {"num_workers", "data.train"},
    {"shuffle", "data.train"},
    {"drop_last", "data.train"},
    {"sampler", "data.train"},
    {"pin_memory", "data.train"},
    {"prefetch_factor", "data.train"},
    {"samples", "data.train"},
    {"lr", "optimizer"},
    {"learning_rate", "optimizer"},
    {"weight_decay", "optimizer"},
    {"loss", "model"},
    {"layers", "model"},
    {"preset", "model"},
    {"gpu", "cluster"},
    {"env", "the scenario"},
});

constexpr std::string_view for_process_group =
    "write what it passes: process_group: {backend: gloo, timeout: 5 min}, and of an init_method "
    "env: {MASTER_ADDR: node0, MASTER_PORT: \"29500\"}";
constexpr std::string_view for_ddp =
    "write the arguments of DistributedDataParallel that it passes as those of the strategy: "
    "trainer: {strategy: {DDPStrategy: {find_unused_parameters: true}}}";

/// Methods of the module and of plugins that scripts of 1.x override.
constexpr auto overrides = std::to_array<FamiliarWord>({
    {"init_dist_connection", for_process_group},
    {"init_ddp_connection", for_process_group},
    {"setup_distributed", for_process_group},
    {"configure_ddp", for_ddp},
});

bool has(const std::vector<std::string_view>& legal, std::string_view word) {
  return std::find(legal.begin(), legal.end(), word) != legal.end();
}

std::string_view last_part(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

// on_val_epoch_end, val_step, on_train_step_end.
std::string hook_in_full(std::string_view word) {
  std::string out = "_" + std::string(word) + "_";
  for (const auto& [part, whole] :
       {FamiliarWord{"_val_", "_validation_"}, FamiliarWord{"_valid_", "_validation_"},
        FamiliarWord{"_eval_", "_validation_"}, FamiliarWord{"_training_", "_train_"},
        FamiliarWord{"_train_step_", "_training_step_"}}) {
    if (const size_t at = out.find(part); at != std::string::npos) {
      out.replace(at, part.size(), whole);
      break;
    }
  }
  return out.substr(1, out.size() - 2);
}

// `{log: {name: .., value: ..}}`, with the first of alternatives.
std::string shape_of(const StatementRow& row) {
  std::string keys;
  for (const std::string_view key : row.required) {
    keys += fmt::format("{}{}: ..", keys.empty() ? "" : ", ", key.substr(0, key.find('|')));
  }
  return keys.empty() ? std::string(row.name()) : fmt::format("{}: {{{}}}", row.name(), keys);
}

}  // namespace

std::string familiar_word(std::string_view word, const std::vector<std::string_view>& legal) {
  for (const auto& [other, ours] : words_of_others) {
    if (other == word && has(legal, ours)) {
      return std::string(ours);
    }
  }
  const std::string hook = hook_in_full(word);
  return hook != word && has(legal, hook) ? hook : std::string();
}

std::string_view section_of_key(std::string_view section, std::string_view key) {
  if (section != "trainer") {
    return {};
  }
  const auto* const found = std::ranges::find(keys_of_others, key, &FamiliarWord::first);
  return found == keys_of_others.end() ? std::string_view() : found->second;
}

std::string_view keys_for_override(std::string_view section, std::string_view key) {
  const auto* const found = std::ranges::find(overrides, key, &FamiliarWord::first);
  return section != "program" || found == overrides.end() ? std::string_view() : found->second;
}

std::string statement_for_python(std::string_view text) {
  const std::string_view called = last_part(text.substr(0, text.find('(')));
  const std::vector<std::string_view> legal = [] {
    std::vector<std::string_view> names;
    for (const StatementRow& row : statement_rows()) {
      names.push_back(row.name());
    }
    return names;
  }();
  const std::string other = familiar_word(called, legal);
  const StatementRow* row = find_statement(other.empty() ? called : std::string_view(other));
  if (text.find('(') == std::string_view::npos && text.find('.') == std::string_view::npos) {
    return {};
  }
  return row == nullptr ? std::string() : fmt::format("write - {}", shape_of(*row));
}

std::string name_for_attribute(std::string_view attribute,
                               const std::vector<std::string_view>& names) {
  const std::string_view name = last_part(attribute);
  return name != attribute && has(names, name) ? std::string(name) : std::string();
}

}  // namespace lockstep
