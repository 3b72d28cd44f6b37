#include "model/network/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/network/accounting.hpp"
#include "model/network/argument_reader.hpp"
#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

constexpr std::string_view containers[] = {"Sequential", "Residual", "repeat"};
constexpr int64_t most_layers = 1'000'000;

bool is_container(std::string_view kind) {
  return std::find(std::begin(containers), std::end(containers), kind) != std::end(containers);
}

bool is_loss(LayerKind kind) {
  return kind == LayerKind::cross_entropy_loss || kind == LayerKind::mse_loss;
}

/// Where the next layer of a list stands: what its name begins with and how it is numbered.
struct Level {
  std::string prefix{};  ///< "" or "layer1.0."
  std::string path{};    ///< "layers", "layers[2].shortcut"
  std::string suffix{};  ///< of explicit names: tells the turns of a repeat apart
  int64_t next_number = 0;
};

class Builder {
 public:
  explicit Builder(const NetworkDescription& description) : description_(description) {
    result_.network.name = description.name;
    result_.network.input_dtype = description.input_dtype;
  }

  BuildResult build() {
    if (!find_input()) {
      return std::move(result_);
    }
    Level top{.path = "layers"};
    if (add_all(description_.layers, top)) {
      add_loss();
    }
    if (result_.ok() && result_.network.layers.empty()) {
      complain("layers", {}, "a network without layers", "list at least one layer");
    }
    if (result_.ok()) {
      account(result_.network);
    }
    return std::move(result_);
  }

 private:
  bool find_input();
  bool add_all(const std::vector<LayerDescription>& descriptions, Level& level);
  bool add(const LayerDescription& description, Level& level, const std::string& path);
  bool add_layer(const LayerDescription& description, Level& level, const std::string& path);
  bool add_sequential(const LayerDescription& description, Level& level, const std::string& path);
  bool add_residual(const LayerDescription& description, Level& level, const std::string& path);
  bool add_repeat(const LayerDescription& description, Level& level, const std::string& path);
  void add_loss();

  bool finish(ArgumentReader& arguments, const std::string& path);
  bool tie(ArgumentReader& arguments, Layer& layer);
  void add_marker(LayerKind kind, const Level& inside, const Shape& output);
  std::string name_for(ArgumentReader& arguments, Level& level);
  Level inner_level(const std::string& name, const std::string& path, const Level& outer);
  void complain(const std::string& path, const SourcePlace& source, std::string message,
                std::string remedy);

  const NetworkDescription& description_;
  BuildResult result_;
  Shape shape_;
  std::set<std::string> names_;
};

void Builder::complain(const std::string& path, const SourcePlace& source, std::string message,
                       std::string remedy) {
  result_.errors.push_back(
      {result_.network.layers.size(), path, std::move(message), std::move(remedy), source});
}

/// The first layer that computes; a repeat or container is entered.
const LayerDescription* first_layer(const std::vector<LayerDescription>& layers) {
  for (const LayerDescription& layer : layers) {
    if (is_container(layer.kind)) {
      if (const LayerDescription* inner = first_layer(layer.layers)) {
        return inner;
      }
    } else if (layer.kind != "Buffer") {
      return &layer;
    }
  }
  return nullptr;
}

bool Builder::find_input() {
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
  if (std::any_of(shape_.begin(), shape_.end(), [](int64_t size) { return size < 1; })) {
    complain("input", {}, fmt::format("a sample of shape {}", text_of(shape_)),
             "write sizes above 0");
    return false;
  }
  result_.network.input = shape_;
  if (first != nullptr && first->kind == "Embedding") {
    result_.network.input_dtype = DType::int64;
  }
  return true;
}

bool Builder::add_all(const std::vector<LayerDescription>& descriptions, Level& level) {
  for (size_t i = 0; i < descriptions.size(); ++i) {
    if (!add(descriptions[i], level, fmt::format("{}[{}]", level.path, i))) {
      return false;
    }
  }
  return true;
}

bool Builder::add(const LayerDescription& description, Level& level, const std::string& path) {
  if (!is_container(description.kind) && !description.layers.empty()) {
    complain(path, description.source, fmt::format("{} holds no layers", description.kind),
             "use Sequential, Residual or repeat");
    return false;
  }
  if (description.kind != "Residual" && !description.shortcut.empty()) {
    complain(path, description.source, fmt::format("{} has no shortcut", description.kind),
             "use Residual");
    return false;
  }
  if (description.kind == "Sequential") {
    return add_sequential(description, level, path);
  }
  if (description.kind == "Residual") {
    return add_residual(description, level, path);
  }
  if (description.kind == "repeat") {
    return add_repeat(description, level, path);
  }
  return add_layer(description, level, path);
}

/// An explicit name, or the number in the container as torch.nn.Sequential gives it.
std::string Builder::name_for(ArgumentReader& arguments, Level& level) {
  const std::string number = fmt::format("{}", level.next_number++);
  if (!arguments.has("name")) {
    return level.prefix + number;
  }
  const std::string name = arguments.text("name", number);
  return level.prefix + name + (name.empty() ? "" : level.suffix);
}

/// An empty name adds no level: a residual of GPT-2 has no module of its own.
Level Builder::inner_level(const std::string& name, const std::string& path, const Level& outer) {
  const bool is_nameless = name == outer.prefix;
  return {.prefix = is_nameless ? name : name + ".", .path = path + ".layers"};
}

bool Builder::add_sequential(const LayerDescription& description, Level& level,
                             const std::string& path) {
  ArgumentReader arguments(description, {});
  Level inside = inner_level(name_for(arguments, level), path, level);
  return finish(arguments, path) && add_all(description.layers, inside);
}

bool Builder::add_residual(const LayerDescription& description, Level& level,
                           const std::string& path) {
  ArgumentReader arguments(description, {});
  Level inside = inner_level(name_for(arguments, level), path, level);
  if (!finish(arguments, path)) {
    return false;
  }
  const Shape remembered = shape_;
  add_marker(LayerKind::residual_begin, inside, remembered);
  if (!add_all(description.layers, inside)) {
    return false;
  }
  const Shape result = shape_;
  if (!description.shortcut.empty()) {
    add_marker(LayerKind::residual_shortcut, inside, remembered);
    inside.path = path + ".shortcut";
    if (!add_all(description.shortcut, inside)) {
      return false;
    }
  } else {
    shape_ = remembered;
  }
  if (shape_ != result) {
    complain(path, description.source,
             fmt::format("a residual adds {} to {}", text_of(result), text_of(shape_)),
             fmt::format("give `shortcut` layers that end in {}", text_of(result)));
    return false;
  }
  add_marker(LayerKind::residual_add, inside, result);
  return true;
}

bool Builder::add_repeat(const LayerDescription& description, Level& level,
                         const std::string& path) {
  ArgumentReader arguments(description, {"times"});
  const int64_t times = arguments.integer("times");
  if (arguments.ok() && (times < 0 || times > most_layers)) {
    arguments.complain(fmt::format("repeat {} times", times),
                       fmt::format("write 0 to {}", most_layers));
  }
  if (!finish(arguments, path)) {
    return false;
  }
  const std::string outer_path = std::exchange(level.path, path + ".layers");
  const std::string outer_suffix = level.suffix;
  bool fine = true;
  for (int64_t turn = 0; turn < times && fine; ++turn) {
    level.suffix = fmt::format("{}.{}", outer_suffix, turn);
    fine = add_all(description.layers, level);
  }
  level.path = outer_path;
  level.suffix = outer_suffix;
  return fine;
}

void Builder::add_marker(LayerKind kind, const Level& inside, const Shape& output) {
  std::string name = inside.prefix + std::string(name_of(kind));
  for (int turn = 2; !names_.insert(name).second; ++turn) {
    name = fmt::format("{}{}_{}", inside.prefix, name_of(kind), turn);
  }
  Layer layer{.kind = kind, .name = std::move(name)};
  layer.input = shape_;
  layer.output = output;
  layer.work = {Work{.runs = false}, Work{.runs = false}, Work{.runs = false}};
  // The sum is one kernel forward; backward adds the two branches' gradients where they began.
  if (kind == LayerKind::residual_add) {
    layer.work[static_cast<size_t>(Pass::forward)] = {.elements = 3 * elements_of(output)};
  } else if (kind == LayerKind::residual_begin) {
    layer.work[static_cast<size_t>(Pass::input_gradient)] = {.elements = 3 * elements_of(output)};
  }
  shape_ = output;
  result_.network.layers.push_back(std::move(layer));
}

bool Builder::finish(ArgumentReader& arguments, const std::string& path) {
  arguments.finish();
  for (NetworkError error : arguments.errors()) {
    error.layer = result_.network.layers.size();
    error.path = path;
    result_.errors.push_back(std::move(error));
  }
  return arguments.ok();
}

/// A tied Linear has no weight of its own and no bias.
bool Builder::tie(ArgumentReader& arguments, Layer& layer) {
  const std::string target = arguments.text("tied_to", "");
  if (target.empty() || !arguments.ok()) {
    return arguments.ok();
  }
  const auto& layers = result_.network.layers;
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const Layer& other) { return other.name == target; });
  if (found == layers.end() || found->parameters.empty() ||
      found->parameters[0].shape != layer.parameters[0].shape) {
    arguments.complain(fmt::format("no earlier layer `{}` has a weight of shape {}", target,
                                   text_of(layer.parameters[0].shape)),
                       "name the embedding whose weight is shared");
    return false;
  }
  layer.tied_layer = static_cast<size_t>(found - layers.begin());
  layer.parameters.erase(layer.parameters.begin());
  return true;
}

bool Builder::add_layer(const LayerDescription& description, Level& level,
                        const std::string& path) {
  const auto kind = find_layer_kind(description.kind);
  if (!kind) {
    complain(path, description.source, fmt::format("no layer is called {}", description.kind),
             fmt::format("use one of: {}", fmt::join(layer_names(), ", ")));
    return false;
  }
  ArgumentReader arguments(description, kind->positions);
  Layer layer{.name = name_for(arguments, level)};
  layer.input = shape_;
  kind->fill({shape_, description_.flash_attention}, arguments, layer);
  if (layer.kind == LayerKind::linear) {
    tie(arguments, layer);
  }
  if (is_loss(layer.kind)) {
    arguments.complain(fmt::format("{} is a loss, not a layer", description.kind),
                       "write it under `loss`");
  }
  layer.checkpoint = arguments.boolean("checkpoint", false);
  if (!arguments.boolean("trainable", true)) {
    for (ParameterTensor& tensor : layer.parameters) {
      tensor.trainable = false;
    }
  }
  if (arguments.has("device")) {
    layer.device = static_cast<int>(arguments.integer("device", 0));
  }
  if (arguments.ok() && !names_.insert(layer.name).second) {
    arguments.complain(fmt::format("two layers are called `{}`", layer.name), "rename one");
  }
  if (result_.network.layers.size() >= static_cast<size_t>(most_layers)) {
    arguments.complain(fmt::format("more than {} layers", most_layers), "repeat fewer times");
  }
  if (!finish(arguments, path)) {
    return false;
  }
  shape_ = layer.output;
  result_.network.layers.push_back(std::move(layer));
  return true;
}

void Builder::add_loss() {
  const auto kind = find_layer_kind(description_.loss.kind);
  ArgumentReader arguments(description_.loss, {});
  Layer& loss = result_.network.loss;
  loss.name = "loss";
  loss.input = shape_;
  if (kind) {
    kind->fill({shape_, description_.flash_attention}, arguments, loss);
  }
  if (!kind || !is_loss(loss.kind)) {
    complain("loss", description_.loss.source,
             fmt::format("no loss is called {}", description_.loss.kind),
             "use CrossEntropyLoss or MSELoss");
    return;
  }
  finish(arguments, "loss");
}

}  // namespace

BuildResult build_network(const NetworkDescription& description) {
  return Builder(description).build();
}

std::vector<std::string_view> layer_names() {
  std::vector<std::string_view> names(std::begin(containers), std::end(containers));
  for (const LayerKindEntry& entry : layer_kinds()) {
    names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep
