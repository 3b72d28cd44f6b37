#include "model/network/presets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/argument_reader.hpp"
#include "model/network/bert.hpp"
#include "model/network/published.hpp"

namespace lockstep {

namespace {

NetworkDescription describe_mlp(ArgumentReader& arguments) {
  const int64_t in_features = arguments.integer("in_features", 32);
  const int64_t hidden_size = arguments.integer("hidden_size", 64);
  const int64_t classes = arguments.integer("num_classes", 2);
  return {.name = "mlp",
          .input = Shape{in_features},
          .layers = {named_layer("Linear", "0", {{"", in_features}, {"", hidden_size}}),
                     named_layer("ReLU", "1"),
                     named_layer("Linear", "2", {{"", hidden_size}, {"", classes}})}};
}

}  // namespace

LayerDescription named_layer(std::string kind, std::string name, Arguments arguments) {
  arguments.push_back({"name", std::move(name)});
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription residual(std::string name, Layers layers, Layers shortcut) {
  LayerDescription block = named_layer("Residual", std::move(name));
  block.layers = std::move(layers);
  block.shortcut = std::move(shortcut);
  return block;
}

LayerDescription repeating_block(std::string class_name, Layers layers) {
  LayerDescription sequential = named_layer("Sequential", "");
  sequential.layers = std::move(layers);
  sequential.block_class = std::move(class_name);
  return sequential;
}

std::variant<NetworkDescription, NetworkError> describe_preset(
    std::string_view name, const std::vector<NamedArgument>& arguments) {
  const std::vector<NetworkPreset> presets = network_presets();
  const bool known = std::any_of(presets.begin(), presets.end(),
                                 [&](const NetworkPreset& preset) { return preset.name == name; });
  if (!known) {
    std::vector<std::string_view> names;
    for (const NetworkPreset& preset : presets) {
      names.push_back(preset.name);
    }
    return NetworkError{.path = "preset",
                        .message = fmt::format("no model preset is called {}", name),
                        .remedy = fmt::format("use one of: {}", fmt::join(names, ", "))};
  }
  const LayerDescription request{.kind = std::string(name), .arguments = arguments};
  ArgumentReader reader(request, {});
  std::optional<NetworkDescription> described =
      name.starts_with("bert") || name.starts_with("roberta") ? describe_bert(name, reader)
                                                              : describe_text_preset(name, reader);
  if (!described) {
    described = describe_image_preset(name, reader);
  }
  NetworkDescription description = described ? std::move(*described) : describe_mlp(reader);
  reader.finish();
  if (!reader.ok()) {
    NetworkError error = reader.errors().front();
    error.path = "preset";
    return error;
  }
  return description;
}

}  // namespace lockstep
