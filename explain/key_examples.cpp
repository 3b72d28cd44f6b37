#include "explain/key_examples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "explain/key_example_table.hpp"
#include "model/scenario/hooks.hpp"

namespace lockstep::cli {

namespace {

// Defaults of an example, by top-level key.
constexpr std::pair<std::string_view, std::string_view> otherwise[] = {
    {"version", "1"},
    {"cluster", "{preset: dgx-a100, nodes: 1}"},
    {"model", "{preset: mlp}"},
    {"data", "{train: {samples: 64, batch_size: 8}}"},
    {"trainer", "{accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}"},
};

constexpr std::string_view bare_cluster = "cluster: {ranks: 2, network: {bandwidth: 25 GB/s}}";

// Lines of an example that begin with a key at the left margin.
bool has_top_level(std::string_view lines, std::string_view key) {
  const std::string begin = std::string(key) + ":";
  return lines.starts_with(begin) || lines.find("\n" + begin) != std::string_view::npos;
}

// "{a: 1, b: 2}" with one key more, or a different value of it.
std::string with_key(std::string_view map, std::string_view key, std::string_view value) {
  const std::string begin = std::string(key) + ": ";
  std::string text(map.substr(1, map.size() - 2));
  const size_t at = text.starts_with(begin) ? 0 : text.find(", " + begin);
  if (at != std::string::npos) {
    const size_t from = at == 0 ? 0 : at + 2;
    const size_t end = std::min(text.find(", ", from), text.size());
    text.replace(from, end - from, begin + std::string(value));
    return "{" + text + "}";
  }
  return fmt::format("{{{}{}{}{}}}", text, text.empty() ? "" : ", ", begin, value);
}

std::string_view value_otherwise(std::string_view key) {
  const auto found = std::ranges::find(otherwise, key, [](const auto& one) { return one.first; });
  return found == std::end(otherwise) ? std::string_view() : found->second;
}

// The place of a key in a table.
std::string placed(std::string_view table, std::string_view key, std::string_view value) {
  const auto in = [&](std::string_view map) { return with_key(map, key, value); };
  if (table == "scenario") {
    return fmt::format("{}: {}", key, value);
  }
  if (table == "cluster.gpu") {
    return fmt::format("cluster: {{preset: dgx-a100, nodes: 1, gpu: {}}}", in("{}"));
  }
  if (table == "cluster.network") {
    return fmt::format(
        "cluster: {{preset: dgx-a100, nodes: 2, network: {}}}\n"
        "trainer: {{accelerator: gpu, devices: 8, num_nodes: 2, max_epochs: 1}}",
        in("{}"));
  }
  if (table == "cluster.nvme") {
    return fmt::format("cluster: {{preset: dgx-a100, nodes: 1, nvme: {}}}", in("{}"));
  }
  if (table == "cluster.price") {
    return fmt::format("cluster: {{preset: dgx-a100, nodes: 1, price: {}}}", in("{amount: 20}"));
  }
  if (table == "layer") {
    return fmt::format("model: {{input: [4], layers: [{{Linear: {}}}]}}",
                       in("{in_features: 4, out_features: 2}"));
  }
  if (table == "Cost") {
    return fmt::format("model: {{input: [4], layers: [{{Cost: {}}}]}}",
                       in("{parameters: 1000000, forward: 1 ms, backward: 2 ms}"));
  }
  if (table == "data") {
    const bool stage = key == "train" || key == "val" || key == "test" || key == "predict";
    return stage ? fmt::format("data: {{{}: {}}}", key, value)
                 : fmt::format("data: {{train: {}}}", in("{samples: 64, batch_size: 8}"));
  }
  const std::string_view rest = value_otherwise(table);
  return fmt::format("{}: {}", table, in(rest.empty() ? "{}" : rest));
}

// A fault of every kind, with the keys that it needs; the others are added.
std::string fault(std::string_view kind, std::string_view key) {
  for (const FaultExample& known : fault_examples()) {
    if (known.kind != kind) {
      continue;
    }
    std::string map(known.arguments);
    if (key == "ranks") {
      const size_t at = map.find("rank: 1");
      map = at == std::string::npos ? map : map.replace(at, 7, "ranks: [0, 1]");
    } else if (key == "for" && known.lasts) {
      map = with_key(map, "for", "1 ms");
    }
    const bool shown = map.find(std::string(key) + ": ") != std::string::npos;
    return !shown ? std::string()
                  : scenario_with(fmt::format("faults: [{{{}: {}}}]{}{}", kind, map,
                                              known.more.empty() ? "" : "\n", known.more));
  }
  return "";
}

}  // namespace

std::string scenario_with(const std::string& lines) {
  const bool bare = lines.find("ranks:") != std::string::npos && has_top_level(lines, "cluster");
  std::string text;
  for (const auto& [key, value] : otherwise) {
    if (!has_top_level(lines, key) && (!bare || key == "version")) {
      text += fmt::format("{}: {}\n", key, value);
    }
  }
  return text + lines + "\n";
}

std::string example_of_key(std::string_view table, std::string_view key) {
  constexpr std::string_view faults = "fault.";
  if (table.starts_with(faults)) {
    return fault(table.substr(faults.size()), key);
  }
  for (const KeyExample& known : key_examples()) {
    if (known.table == table && known.key == key) {
      const std::string line =
          known.value.empty() ? std::string() : placed(table, key, known.value);
      const std::string between = line.empty() || known.more.empty() ? "" : "\n";
      return scenario_with(line + between + std::string(known.more));
    }
  }
  return "";
}

std::string example_of_statement(std::string_view name) {
  for (const StatementExample& known : statement_examples()) {
    if (known.name != name) {
      continue;
    }
    const std::string head = known.bare ? std::string(bare_cluster) + "\n" : std::string();
    const std::string more = known.more.empty() ? "" : std::string(known.more) + "\n";
    return scenario_with(fmt::format("{}{}program:\n{}", head, more, known.program));
  }
  return "";
}

std::string example_of_hook(std::string_view name) {
  const bool in_test = name.find("test") != name.npos;
  const bool in_predict = name.find("predict") != name.npos;
  std::string text;
  if (in_test || in_predict) {
    text = fmt::format("data: {{{}: {{samples: 32}}}}\n", in_test ? "test" : "predict");
  } else if (name.find("val") != name.npos || name.find("sanity") != name.npos) {
    text = "data: {train: {samples: 64}, val: {samples: 32}}\n";
  } else if (name == "lr_scheduler_step") {
    text = "lr_scheduler: {StepLR: {step_size: 1}}\n";
  }
  text += "program:\n";
  if (in_test || in_predict) {
    text += fmt::format("  main: [fit, {}]\n", in_test ? "test" : "predict");
  }
  std::string_view held = "host: 1 ms";
  if (name == "main") {
    held = "fit";
  } else if (is_step_hook(name)) {
    held = "forward";
  } else if (name == "optimizer_step" || name == "lr_scheduler_step") {
    held = name;
  } else if (name == "optimizer_zero_grad" || name == "on_validation_model_zero_grad") {
    held = "zero_grad";
  } else if (name == "configure_gradient_clipping") {
    held = "clip_gradients: 0.5";
  }
  const bool has_key = held.find(':') != held.npos;
  text += fmt::format("  {}: [{}{}{}]", name, has_key ? "{" : "", held, has_key ? "}" : "");
  return scenario_with(text);
}

}  // namespace lockstep::cli
