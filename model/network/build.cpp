#include "model/network/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/network/accounting.hpp"
#include "model/network/network_builder.hpp"

namespace lockstep {

namespace {

constexpr std::string_view containers[] = {"Sequential", "Residual", "Concatenate",
                                           "Multiply",   "Aside",    "repeat"};

/// Layers of torch that scenarios may name and Lockstep does not model, and why.
struct UnmodelledLayer {
  std::string_view name;
  std::string_view why;
  std::string_view remedy;
};
constexpr UnmodelledLayer unmodelled_layers[] = {
    {"SyncBatchNorm", "its exchange of statistics in the forward is not modelled yet",
     "write BatchNorm2d: then each rank normalises over its own batch"},
};

/// The first layer that computes; containers are entered. `behind_positions`: that computes with
/// what Positions has taken of the input.
const LayerDescription* first_layer(const std::vector<LayerDescription>& layers,
                                    bool behind_positions = false) {
  for (const LayerDescription& layer : layers) {
    if (is_container(layer.kind)) {
      const bool is_aside = layer.kind == "Aside";
      if (const LayerDescription* inner =
              first_layer(is_aside ? layer.shortcut : layer.layers, behind_positions)) {
        return inner;
      }
    } else if (layer.kind != "Buffer" && !(behind_positions && layer.kind == "Positions")) {
      return &layer;
    }
  }
  return nullptr;
}

}  // namespace

bool is_container(std::string_view kind) {
  return std::find(std::begin(containers), std::end(containers), kind) != std::end(containers);
}

BuildResult NetworkBuilder::build() {
  if (!find_input()) {
    return std::move(result_);
  }
  LayerLevel top{.path = "layers"};
  if (add_all(description_.layers, top)) {
    add_loss();
  }
  if (result_.ok()) {
    read_initial_of_model();
  }
  if (result_.ok() && result_.network.layers.empty()) {
    complain("layers", {}, "a network without layers", "list at least one layer");
  }
  if (result_.ok()) {
    account(result_.network, {description_.input_has_gradient, description_.output_is_input});
  }
  return std::move(result_);
}

void NetworkBuilder::complain(const std::string& path, const SourcePlace& source,
                              std::string message, std::string remedy) {
  result_.errors.push_back(
      {result_.network.layers.size(), path, std::move(message), std::move(remedy), source});
}

bool NetworkBuilder::find_input() {
  const LayerDescription* first = first_layer(description_.layers);
  if (description_.input) {
    shape_ = *description_.input;
  } else if (first != nullptr && first->kind == "Linear") {
    ArgumentReader arguments(*first, {"in_features"});
    shape_ = {arguments.integer("in_features", 1)};
  } else if (first != nullptr && first->kind == "Cost") {
    shape_ = {1};
  } else {
    complain("input", {}, "the shape of one sample is not known",
             "give `input`, such as [3, 224, 224], or [1024] for 1024 tokens");
    return false;
  }
  Int128 elements = 1;
  for (const int64_t size : shape_) {
    elements = size < 1 ? 0 : std::min<Int128>(elements * size, Int128{most_elements} + 1);
  }
  if (elements < 1 || elements > most_elements) {
    complain("input", {}, fmt::format("a sample of shape {}", text_of(shape_)),
             fmt::format("write sizes above 0 with a product of at most {}", most_elements));
    return false;
  }
  result_.network.input = shape_;
  const LayerDescription* reader = first_layer(description_.layers, true);
  if (reader != nullptr && reader->kind == "Embedding") {
    result_.network.input_dtype = DType::int64;
  }
  return true;
}

bool NetworkBuilder::finish(ArgumentReader& arguments, const std::string& path) {
  arguments.finish();
  for (NetworkError error : arguments.errors()) {
    error.layer = result_.network.layers.size();
    error.path = path;
    result_.errors.push_back(std::move(error));
  }
  return arguments.ok();
}

/// A tied Linear has no weight of its own.
bool NetworkBuilder::tie(ArgumentReader& arguments, Layer& layer) {
  const std::string target = arguments.text("tied_to", "");
  if (target.empty() || !arguments.ok()) {
    return arguments.ok();
  }
  const auto& layers = result_.network.layers;
  const auto found = layer_of_name_.find(target);
  if (found == layer_of_name_.end() || layers[found->second].parameters.empty() ||
      layers[found->second].parameters[0].shape != layer.parameters[0].shape) {
    arguments.complain(fmt::format("no earlier layer `{}` has a weight of shape {}", target,
                                   text_of(layer.parameters[0].shape)),
                       "name the embedding whose weight is shared");
    return false;
  }
  layer.tied_layer = found->second;
  layer.parameters.erase(layer.parameters.begin());
  return true;
}

const LayerKindEntry* NetworkBuilder::find_kind(std::string_view name) const {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const LayerKindEntry& kind) { return kind.name == name; });
  return found == kinds_.end() ? nullptr : &*found;
}

/// A size that overflows is the description's doing.
void NetworkBuilder::fill(const LayerKindEntry& kind, ArgumentReader& arguments, Layer& layer) {
  layer.input = shape_;
  const OpenAside* aside = kind.reads_aside ? find_aside(arguments, kind.name) : nullptr;
  try {
    if (aside != nullptr) {
      layer.aside = aside->tensor;
    }
    kind.fill(
        {shape_, description_.flash_attention, aside != nullptr ? &aside->tensor.shape : nullptr},
        arguments, layer);
  } catch (const QuantityOverflow& overflow) {
    arguments.complain(fmt::format("{}: {}", kind.name, overflow.what()), "write smaller sizes");
  }
  if (arguments.ok()) {
    has_possible_size(layer, arguments);
  }
}

void NetworkBuilder::read_common(ArgumentReader& arguments, Layer& layer) {
  if (!arguments.boolean("trainable", true)) {
    for (ParameterTensor& tensor : layer.parameters) {
      tensor.trainable = false;
    }
  }
  if (arguments.has("device")) {
    layer.device = static_cast<int>(arguments.integer("device", 0));
  }
}

/// What can be wrong with a layer because of those before it.
void NetworkBuilder::check_among_others(ArgumentReader& arguments, const Layer& layer) {
  const size_t index = result_.network.layers.size();
  if (!arguments.ok()) {
    return;
  }
  if (!layer_of_name_.emplace(layer.name, index).second) {
    arguments.complain(fmt::format("two layers are called `{}`", layer.name), "rename one");
  }
  parameter_elements_ += layer.parameter_elements();
  if (parameter_elements_ > most_elements || index >= static_cast<size_t>(most_layers)) {
    arguments.complain("a network beyond all memory", "use fewer or smaller layers");
  }
}

bool NetworkBuilder::add_layer(const LayerDescription& description, LayerLevel& level,
                               const std::string& path) {
  const LayerKindEntry* kind = find_kind(description.kind);
  const auto* unmodelled =
      std::ranges::find(unmodelled_layers, description.kind, &UnmodelledLayer::name);
  if (unmodelled != std::end(unmodelled_layers)) {
    complain(path, description.source, fmt::format("{}: {}", unmodelled->name, unmodelled->why),
             std::string(unmodelled->remedy));
    result_.errors.back().is_unmodelled = true;
    return false;
  }
  if (kind == nullptr) {
    complain(path, description.source, fmt::format("no layer is called {}", description.kind),
             fmt::format("use one of: {}", fmt::join(layer_names(), ", ")));
    result_.errors.back().unknown_kind = description.kind;
    return false;
  }
  ArgumentReader arguments(description, kind->positions);
  Layer layer{.name = name_for(arguments, level)};
  fill(*kind, arguments, layer);
  if (layer.kind == LayerKind::linear) {
    tie(arguments, layer);
  }
  if (is_loss(layer.kind)) {
    arguments.complain(fmt::format("{} is a loss, not a layer", description.kind),
                       "write it under `loss`");
  }
  read_common(arguments, layer);
  const size_t errors_before = result_.errors.size();
  for (const TensorValues& values : description.initial) {
    read_initial(values, values.name, layer, path);
  }
  const auto recomputation = read_checkpoint(arguments);
  if (recomputation == Recomputation::attention_core && !layer.attention_core) {
    arguments.complain(fmt::format("{} has no attention core", description.kind),
                       "checkpoint it as a whole");
  }
  check_among_others(arguments, layer);
  if (!finish(arguments, path) || result_.errors.size() > errors_before) {
    return false;
  }
  shape_ = layer.output;
  const size_t first = begin_segment(recomputation);
  const size_t block = begin_block(description.kind, false);
  result_.network.layers.push_back(std::move(layer));
  end_block(block);
  end_segment(first, recomputation);
  return true;
}

void NetworkBuilder::add_loss() {
  const LayerKindEntry* kind = find_kind(description_.loss.kind);
  ArgumentReader arguments(description_.loss, {});
  Layer& loss = result_.network.loss;
  loss.name = "loss";
  if (kind != nullptr) {
    fill(*kind, arguments, loss);
  }
  if (kind == nullptr || !is_loss(loss.kind)) {
    complain("loss", description_.loss.source,
             fmt::format("no loss is called {}", description_.loss.kind),
             fmt::format("use one of: {}", fmt::join(loss_names(), ", ")));
    result_.errors.back().unknown_kind = kind == nullptr ? description_.loss.kind : "";
    return;
  }
  finish(arguments, "loss");
}

std::vector<std::string_view> loss_names() {
  std::vector<std::string_view> names;
  for (const LayerKindEntry& entry : loss_layer_kinds()) {
    names.push_back(entry.name);
  }
  return names;
}

bool is_known_and_unmodelled(std::string_view layer) {
  return std::ranges::find(unmodelled_layers, layer, &UnmodelledLayer::name) !=
         std::end(unmodelled_layers);
}

BuildResult build_network(const NetworkDescription& description) {
  return NetworkBuilder(description).build();
}

std::vector<std::string_view> layer_names() {
  std::vector<std::string_view> names(std::begin(containers), std::end(containers));
  for (const LayerKindEntry& entry : layer_kinds()) {
    names.push_back(entry.name);
  }
  names.push_back("TransformerEncoderLayer");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep
