// TransformerEncoderLayer: the layers that torch.nn makes it of.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/network/network_builder.hpp"

namespace lockstep {

namespace {

/// torch's arguments.
struct EncoderArguments {
  int64_t d_model = 0;
  int64_t nhead = 0;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";
  double layer_norm_eps = 1e-5;
  bool norm_first = false;
  bool bias = true;
  bool trainable = true;
};

/// Makes the parts, with the names of torch's attributes.
class EncoderParts {
 public:
  EncoderParts(const EncoderArguments& given, SourcePlace source)
      : given_(given), source_(std::move(source)) {}

  /// x + dropout(attention(x)); x + dropout(linear(dropout(activation(linear(x))))); each with its
  /// norm behind the sum, or before the branch.
  std::vector<LayerDescription> all() const {
    std::vector<LayerDescription> layers;
    add_block(layers, "norm1",
              {named("MultiheadAttention", "self_attn",
                     {{"embed_dim", given_.d_model},
                      {"num_heads", given_.nhead},
                      {"dropout", given_.dropout},
                      {"bias", given_.bias}}),
               dropout("dropout1")});
    add_block(
        layers, "norm2",
        {linear("linear1", given_.d_model, given_.dim_feedforward),
         named(given_.activation == "gelu" ? "GELU" : "ReLU", "activation", {}), dropout("dropout"),
         linear("linear2", given_.dim_feedforward, given_.d_model), dropout("dropout2")});
    return layers;
  }

 private:
  LayerDescription named(std::string kind, std::string name,
                         std::vector<NamedArgument> arguments) const {
    LayerDescription layer{.kind = std::move(kind), .arguments = std::move(arguments)};
    layer.arguments.push_back({"name", std::move(name)});
    layer.arguments.push_back({"trainable", given_.trainable});
    layer.source = source_;
    return layer;
  }
  LayerDescription dropout(std::string name) const {
    return named("Dropout", std::move(name), {{"p", given_.dropout}});
  }
  LayerDescription linear(std::string name, int64_t in, int64_t out) const {
    return named("Linear", std::move(name),
                 {{"in_features", in}, {"out_features", out}, {"bias", given_.bias}});
  }
  void add_block(std::vector<LayerDescription>& layers, std::string norm_name,
                 std::vector<LayerDescription> branch) const {
    LayerDescription norm = named("LayerNorm", std::move(norm_name),
                                  {{"normalized_shape", given_.d_model},
                                   {"eps", given_.layer_norm_eps},
                                   {"bias", given_.bias}});
    LayerDescription sum{.kind = "Residual", .arguments = {{"name", std::string()}}};
    sum.source = source_;
    if (given_.norm_first) {
      branch.insert(branch.begin(), std::move(norm));
      sum.layers = std::move(branch);
      layers.push_back(std::move(sum));
    } else {
      sum.layers = std::move(branch);
      layers.push_back(std::move(sum));
      layers.push_back(std::move(norm));
    }
  }

  const EncoderArguments& given_;
  SourcePlace source_;
};

/// `linear1.weight` goes to the layer `linear1` as `weight`; returns the first that fits none.
const TensorValues* hand_down(const std::vector<TensorValues>& initial,
                              std::vector<LayerDescription>& layers) {
  std::vector<LayerDescription*> parts;
  for (LayerDescription& layer : layers) {
    parts.push_back(&layer);
    for (LayerDescription& inner : layer.layers) {
      parts.push_back(&inner);
    }
  }
  for (const TensorValues& values : initial) {
    const size_t dot = std::min(values.name.find('.'), values.name.size());
    const auto holds = [&](const LayerDescription* part) {
      return std::ranges::any_of(part->arguments, [&](const NamedArgument& argument) {
        return argument.name == "name" && argument.value == Argument(values.name.substr(0, dot));
      });
    };
    const auto part = std::ranges::find_if(parts, holds);
    if (dot == values.name.size() || part == parts.end()) {
      return &values;
    }
    (*part)->initial.push_back(values);
    (*part)->initial.back().name = values.name.substr(dot + 1);
  }
  return nullptr;
}

}  // namespace

bool NetworkBuilder::add_encoder_layer(const LayerDescription& description, LayerLevel& level,
                                       const std::string& path) {
  ArgumentReader arguments(description,
                           {"d_model", "nhead", "dim_feedforward", "dropout", "activation",
                            "layer_norm_eps", "batch_first", "norm_first", "bias"});
  const EncoderArguments given{.d_model = arguments.integer("d_model"),
                               .nhead = arguments.integer("nhead"),
                               .dim_feedforward = arguments.integer("dim_feedforward", 2048),
                               .dropout = arguments.number("dropout", 0.1),
                               .activation = arguments.text("activation", "relu"),
                               .layer_norm_eps = arguments.number("layer_norm_eps", 1e-5),
                               .norm_first = arguments.boolean("norm_first", false),
                               .bias = arguments.boolean("bias", true),
                               .trainable = arguments.boolean("trainable", true)};
  arguments.boolean("batch_first", true);  // a sample has no batch dimension: nothing to choose
  arguments.only("device", int64_t{0});
  if (given.activation != "relu" && given.activation != "gelu") {
    arguments.complain(fmt::format("no activation `{}`", given.activation), "write relu or gelu");
  }
  const LayerLevel inside = inner_level(name_for(arguments, level), path, level);
  const auto recomputation = read_checkpoint(arguments);
  if (!finish(arguments, path)) {
    return false;
  }
  std::vector<LayerDescription> layers = EncoderParts(given, description.source).all();
  if (const TensorValues* strange = hand_down(description.initial, layers)) {
    complain(path, strange->place,
             fmt::format("TransformerEncoderLayer has no `{}`", strange->name),
             "write PART.PARAMETER, such as `linear1.weight` or `self_attn.in_proj_weight`");
    return false;
  }
  LayerLevel level_inside = inside;
  const size_t first = begin_segment(recomputation);
  const size_t block = begin_block(description.kind, false);
  const bool fine = add_all(layers, level_inside);
  end_block(block);
  end_segment(first, recomputation);
  return fine;
}

}  // namespace lockstep
