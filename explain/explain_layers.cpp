#include "explain/explain_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <variant>

#include "explain/key_examples.hpp"
#include "explain/layer_example_table.hpp"
#include "io/scenario/load/load.hpp"
#include "model/core/ensure.hpp"
#include "model/network/build.hpp"
#include "model/network/memory.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep::cli {

namespace {

const LayerExample* example_of(std::span<const LayerExample> examples, std::string_view name) {
  const auto found = std::ranges::find(examples, name, &LayerExample::name);
  return found == examples.end() ? nullptr : &*found;
}

std::string object_of(const LayerExample& example) {
  const std::string object = example.arguments.empty()
                                 ? std::string(example.name)
                                 : fmt::format("{{{}: {}}}", example.name, example.arguments);
  return example.beside.empty()
             ? object
             : fmt::format("{{Aside: {{of: [{}], layers: [{}]}}}}", example.beside, object);
}

std::string scenario_of(ObjectRole role, const LayerExample& example) {
  if (role == ObjectRole::loss) {
    const std::string last =
        example.before.empty() ? "" : fmt::format(", {}", std::string(example.before));
    return scenario_with(
        fmt::format("model: {{input: {}, layers: [{{Linear: [8, 4]}}{}], loss: {}}}", example.input,
                    last, object_of(example)));
  }
  const std::string first =
      example.before.empty() ? "" : fmt::format("{}, ", std::string(example.before));
  return scenario_with(fmt::format("model: {{input: {}, layers: [{}{}], loss: MSELoss}}{}{}",
                                   example.input, first, object_of(example),
                                   example.lines.empty() ? "" : "\n", example.lines));
}

std::shared_ptr<const Network> network_of(const std::string& scenario) {
  const LoadedScenarios loaded = load_scenario_file(
      "example.yaml", {},
      [&](const std::string&, size_t) -> std::variant<std::string, FileError> { return scenario; });
  ensure(loaded.scenarios.size() == 1, "the example of a layer is one scenario");
  return prepare(loaded.scenarios.front(), standard_strategies(), WorldAbilities{}).network;
}

/// Of layers [first, end), for one sample in fp32.
std::vector<std::string> facts_of(const Network& network, size_t first) {
  const NetworkMemory memory = memory_of(network, {DType::fp32, DType::fp32, true});
  std::vector<std::string> tensors;
  int64_t elements = 0;
  int64_t forward = 0;
  int64_t backward = 0;
  Bytes kept{};
  for (size_t index = first; index < network.layers.size(); ++index) {
    const Layer& layer = network.layers[index];
    for (const ParameterTensor& tensor : layer.parameters) {
      tensors.push_back(fmt::format("{} {}", tensor.name, lockstep::text_of(tensor.shape)));
    }
    for (const BufferTensor& tensor : layer.buffers) {
      tensors.push_back(
          fmt::format("{} {} (buffer)", tensor.name, lockstep::text_of(tensor.shape)));
    }
    elements += layer.parameter_elements();
    forward += layer.work_of(Pass::forward).flops.count();
    backward += layer.work_of(Pass::input_gradient).flops.count() +
                layer.work_of(Pass::weight_gradient).flops.count();
    kept += memory.layers[index].kept;
  }
  return {
      fmt::format("{} becomes {}", lockstep::text_of(network.layers[first].input),
                  lockstep::text_of(network.layers.back().output)),
      tensors.empty() ? "no parameters or buffers"
                      : fmt::format("{}: {} parameters", fmt::join(tensors, ", "), elements),
      fmt::format("{} FLOPs forward, {} for both gradients, in matrix products and convolutions",
                  forward, backward),
      fmt::format("{} bytes kept for the backward, the input of the network not counted",
                  kept.count())};
}

}  // namespace

void describe_layer(ObjectRole role, KeyPage& page) {
  const bool is_layer = role == ObjectRole::layer;
  const LayerExample* example =
      example_of(is_layer ? layer_examples() : loss_examples(), page.name);
  page.is_modelled = example != nullptr && !is_known_and_unmodelled(page.name);
  if (example == nullptr) {
    return;
  }
  page.meaning = example->meaning;
  if (!page.is_modelled) {
    return;
  }
  page.scenario = scenario_of(role, *example);
  if (is_layer) {
    const std::shared_ptr<const Network> network = network_of(page.scenario);
    // What makes the tensor beside it stands before it, with two marks.
    const size_t first = (example->before.empty() ? 0 : 1) + (example->beside.empty() ? 0 : 3);
    page.facts = facts_of(*network, first);
  }
}

}  // namespace lockstep::cli
