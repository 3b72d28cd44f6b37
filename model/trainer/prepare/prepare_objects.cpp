// What the constructors of torch raise, with torch's reason, whatever world runs the scenario:
// torch/nn/modules, torch/utils/data/dataloader.py; for the others see check_training_objects.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "model/trainer/prepare/object_refusal.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- torch.nn ----

void check_conv(const Refuser& layer) {
  const double groups = layer.number("groups", 1);
  if (groups <= 0) {
    layer.refuse("groups", "groups must be a positive integer");
    return;
  }
  for (const std::string_view name : {"in_channels", "out_channels"}) {
    const double channels = layer.number(name, 0);
    if (channels - groups * std::floor(channels / groups) != 0) {
      layer.refuse("groups", fmt::format("{} must be divisible by groups", name));
    }
  }
  const std::string padding = layer.text("padding", "valid");
  if (padding != "valid" && padding != "same") {
    layer.refuse("padding", fmt::format("Invalid padding string '{}', should be one of "
                                        "'valid', 'same'",
                                        padding));
  }
  if (padding == "same" && layer.number("stride", 1) != 1) {
    layer.refuse("padding", "padding='same' is not supported for strided convolutions");
  }
  const std::string mode = layer.text("padding_mode", "zeros");
  if (mode != "zeros" && mode != "reflect" && mode != "replicate" && mode != "circular") {
    layer.refuse("padding_mode",
                 fmt::format("padding_mode must be one of 'zeros', 'reflect', 'replicate', "
                             "'circular', but got padding_mode='{}'",
                             mode));
  }
}

/// The numbers of an argument for each side: one for both, or a list.
std::vector<int64_t> sides(const Object& object, std::string_view name, int64_t otherwise) {
  const PlainValue* const value = object.find(name);
  const auto* const list = value == nullptr ? nullptr : value->get_if<PlainValue::List>();
  const int64_t* const one = value == nullptr ? nullptr : value->get_if<int64_t>();
  if (list == nullptr) {
    return {one == nullptr ? otherwise : *one, one == nullptr ? otherwise : *one};
  }
  std::vector<int64_t> numbers;
  for (const PlainValue& item : *list) {
    const int64_t* const number = item.get_if<int64_t>();
    numbers.push_back(number == nullptr ? otherwise : *number);
  }
  return numbers;
}

// ATen/native/Pool.h, when the layer is first called.
void check_pool(const Refuser& layer) {
  const std::vector<int64_t> kernel = sides(layer.object(), "kernel_size", 0);
  const std::vector<int64_t> padding = sides(layer.object(), "padding", 0);
  for (size_t side = 0; side < std::min(kernel.size(), padding.size()); ++side) {
    if (padding[side] > 0 && padding[side] > kernel[side] / 2) {
      layer.refuse("padding", fmt::format("pad should be at most half of effective kernel size, "
                                          "but got pad={} and kernel_size={}",
                                          padding[side], kernel[side]));
      return;
    }
  }
}

void check_heads(const Refuser& layer, std::string_view width_name, std::string_view heads_name) {
  const auto width = static_cast<int64_t>(layer.number(width_name, 1));
  const auto heads = static_cast<int64_t>(layer.number(heads_name, 1));
  if (width <= 0 || heads <= 0) {
    layer.refuse(heads_name, fmt::format("embed_dim and num_heads must be greater than 0, got "
                                         "embed_dim={} and num_heads={} instead",
                                         width, heads));
  } else if (width % heads != 0) {
    layer.refuse(heads_name, "embed_dim must be divisible by num_heads",
                 fmt::format("choose {} that divides {}", heads_name, width));
  }
}

void check_embedding(const Refuser& layer) {
  const double rows = layer.number("num_embeddings", infinity);
  const double padding = layer.number("padding_idx", 0);
  if (padding >= rows || padding < -rows) {
    layer.refuse("padding_idx", "Padding_idx must be within num_embeddings",
                 fmt::format("num_embeddings is {}", layer.written("num_embeddings")));
  }
}

void check_lstm(const Refuser& layer) {
  for (const std::string_view name : {"hidden_size", "num_layers"}) {
    if (layer.has(name) && layer.number(name, 1) <= 0) {
      layer.refuse(name, fmt::format("{} must be greater than zero", name));
    }
  }
  const double projection = layer.number("proj_size", 0);
  if (projection < 0) {
    layer.refuse("proj_size",
                 "proj_size should be a positive integer or zero to disable projections");
  } else if (projection > 0 && projection >= layer.number("hidden_size", infinity)) {
    layer.refuse("proj_size", "proj_size has to be smaller than hidden_size");
  }
}

void check_probability(const Refuser& layer, std::string_view name) {
  const double probability = layer.number(name, 0);
  if (!(probability >= 0 && probability <= 1)) {
    layer.refuse(name, fmt::format("dropout probability has to be between 0 and 1, but got {}",
                                   layer.written(name)));
  }
}

void check_layer(Preparation& preparation, const Object& object) {
  const Refuser layer(preparation, object, "write a value that torch accepts");
  const std::string_view name = object.name;
  if (name.find("Dropout") != std::string_view::npos) {
    check_probability(layer, "p");
  }
  if (name.starts_with("Conv")) {
    check_conv(layer);
  } else if (name.starts_with("MaxPool") || name.starts_with("AvgPool")) {
    check_pool(layer);
  } else if (name == "MultiheadAttention" || name == "CausalSelfAttention") {
    check_heads(layer, "embed_dim", "num_heads");
    check_probability(layer, "dropout");
  } else if (name.starts_with("TransformerEncoder")) {
    check_heads(layer, "d_model", "nhead");
    check_probability(layer, "dropout");
  } else if (name == "Embedding") {
    check_embedding(layer);
  } else if (name == "LSTM") {
    check_lstm(layer);
    check_probability(layer, "dropout");
  } else if (name == "GroupNorm" && layer.number("num_groups", 1) > 0 &&
             static_cast<int64_t>(layer.number("num_channels", 0)) %
                     static_cast<int64_t>(layer.number("num_groups", 1)) !=
                 0) {
    layer.refuse("num_groups", "num_channels must be divisible by num_groups");
  }
}

void check_layers(Preparation& preparation, const std::vector<LayerSpec>& layers) {
  for (const LayerSpec& layer : layers) {
    if (layer.kind == LayerSpec::Kind::module) {
      check_layer(preparation, layer.object);
    }
    check_layers(preparation, layer.layers);
    check_layers(preparation, layer.shortcut);
  }
}

void check_loss(Preparation& preparation, const Object& object) {
  const Refuser loss(preparation, object, "write a value that torch accepts");
  const std::string reduction = loss.text("reduction", "mean");
  const bool is_batch_mean = reduction == "batchmean" && object.name == "KLDivLoss";
  if (reduction != "mean" && reduction != "sum" && reduction != "none" && !is_batch_mean) {
    loss.refuse("reduction", fmt::format("{} is not a valid value for reduction", reduction));
  }
  const double smoothing = loss.number("label_smoothing", 0);
  if (!(smoothing >= 0 && smoothing <= 1)) {
    loss.refuse("label_smoothing",
                fmt::format("label_smoothing must be between 0.0 and 1.0. Got: {}",
                            loss.written("label_smoothing")));
  }
  if (object.name == "HuberLoss" && !(loss.number("delta", 1) > 0)) {
    loss.refuse("delta", "huber_loss does not support non-positive values for delta.");
  }
  if (object.name == "SmoothL1Loss" && !(loss.number("beta", 1) >= 0)) {
    loss.refuse("beta", "smooth_l1_loss does not support negative values for beta.");
  }
}

void check_model(Preparation& preparation, const ModelSpec& model) {
  check_layers(preparation, model.layers);
  if (model.loss) {
    check_loss(preparation, *model.loss);
  }
  for (const NamedModel& module : model.modules) {
    check_model(preparation, module.model);
  }
}

// ---- torch.utils.data.DataLoader ----

void check_loader(Preparation& preparation, const LoaderSpec& loader) {
  if (value_or(loader.num_workers, int64_t{0}) > 0) {
    return;
  }
  if (loader.prefetch_factor && loader.prefetch_factor->place.line > 0) {
    add_problem(preparation, Problem::Kind::refused, loader.prefetch_factor->place,
                "prefetch_factor option could only be specified in multiprocessing. "
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None.",
                "write num_workers beside it, or leave prefetch_factor out", refused_code);
  }
  if (value_or(loader.persistent_workers, false) && loader.persistent_workers->place.line > 0) {
    add_problem(preparation, Problem::Kind::refused, loader.persistent_workers->place,
                "persistent_workers option needs num_workers > 0",
                "write num_workers beside it, or leave persistent_workers out", refused_code);
  }
}

}  // namespace

void check_objects(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  for (const Object& optimizer : scenario.optimizers) {
    check_optimizer(preparation, optimizer);
  }
  for (const Object& scheduler : scenario.schedulers) {
    check_scheduler(preparation, scheduler);
  }
  if (scenario.model) {
    check_model(preparation, *scenario.model);
  }
  const DataSpec& data = *scenario.data;
  for (const auto* loaders : {&data.train, &data.val, &data.test, &data.predict}) {
    for (const LoaderSpec& loader : *loaders) {
      check_loader(preparation, loader);
    }
  }
}

}  // namespace lockstep
