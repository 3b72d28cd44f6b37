// A mixture of experts: a router, and the feed-forwards among which it divides the tokens.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "model/network/accounting.hpp"
#include "model/network/layer_kind.hpp"
#include "model/network/mixture.hpp"

namespace lockstep {

namespace {

constexpr std::array expert_kinds = {std::pair("swiglu", ExpertKind::swiglu),
                                     std::pair("gelu", ExpertKind::gelu),
                                     std::pair("relu", ExpertKind::relu)};
/// Tensors of one layer: each is a parameter of its own, with a gradient and a state.
constexpr int64_t most_experts = 4096;

ExpertKind read_expert_kind(ArgumentReader& arguments) {
  const std::string word = arguments.text("expert", "swiglu");
  for (const auto& [name, kind] : expert_kinds) {
    if (word == name) {
      return kind;
    }
  }
  arguments.complain(fmt::format("no expert is called `{}`", word), "write swiglu, gelu or relu");
  return ExpertKind::swiglu;
}

/// Absent, or null as Megatron-LM's None: every expert takes all that it is sent.
std::optional<double> read_capacity(ArgumentReader& arguments) {
  if (!arguments.has("capacity_factor")) {
    return std::nullopt;
  }
  const double factor = arguments.number("capacity_factor", 1);
  if (arguments.ok() && !(factor > 0 && std::isfinite(factor))) {
    arguments.complain(fmt::format("capacity_factor is {}", factor),
                       "write a number above 0, such as 1.25, or null: no token is dropped");
  }
  return factor;
}

MixtureArguments read_mixture(ArgumentReader& arguments) {
  MixtureArguments mixture;
  mixture.embed_dim = arguments.integer("embed_dim");
  mixture.hidden_dim = arguments.integer("hidden_dim");
  mixture.num_experts = arguments.integer("num_experts");
  mixture.top_k = arguments.integer("top_k");
  mixture.expert = read_expert_kind(arguments);
  mixture.renormalized = arguments.boolean("norm_topk_prob", true);
  mixture.capacity_factor = read_capacity(arguments);
  mixture.aux_loss_coef = arguments.number("aux_loss_coef", 0);
  mixture.grouped = arguments.boolean("grouped", false);
  mixture.imbalance = arguments.number("imbalance", 1);
  return mixture;
}

bool is_possible_mixture(const MixtureArguments& mixture, ArgumentReader& arguments) {
  for (const auto& [name, value] :
       {std::pair("embed_dim", mixture.embed_dim), std::pair("hidden_dim", mixture.hidden_dim),
        std::pair("num_experts", mixture.num_experts), std::pair("top_k", mixture.top_k)}) {
    if (!is_positive(value, name, arguments)) {
      return false;
    }
  }
  if (mixture.num_experts > most_experts) {
    arguments.complain(fmt::format("num_experts is {}", mixture.num_experts),
                       fmt::format("write at most {}", most_experts));
  } else if (mixture.top_k > mixture.num_experts) {
    arguments.complain(
        fmt::format("top_k {} is above num_experts {}", mixture.top_k, mixture.num_experts),
        "a token chooses each expert once: write top_k of at most num_experts");
  } else if (!(mixture.aux_loss_coef >= 0 && std::isfinite(mixture.aux_loss_coef))) {
    arguments.complain(fmt::format("aux_loss_coef is {}", mixture.aux_loss_coef),
                       "write 0 (no auxiliary loss) or a small number above 0, such as 0.01");
  } else if (!(mixture.imbalance >= 1 &&
               mixture.imbalance <= static_cast<double>(mixture.num_experts))) {
    arguments.complain(fmt::format("imbalance is {}", mixture.imbalance),
                       fmt::format("it is the load of the busiest over the mean: write 1 (uniform) "
                                   "to {}",
                                   mixture.num_experts));
  }
  return arguments.ok();
}

void add_expert_parameters(const MixtureArguments& mixture, Layer& layer) {
  const Shape wide{mixture.hidden_dim, mixture.embed_dim};
  const Shape narrow{mixture.embed_dim, mixture.hidden_dim};
  const int64_t weights = mixture.weights_per_expert();
  for (int64_t expert = 0; expert < (mixture.grouped ? 1 : mixture.num_experts); ++expert) {
    for (int64_t weight = 1; weight <= weights; ++weight) {
      Shape shape = weight == 2 ? narrow : wide;
      if (mixture.grouped) {
        shape.insert(shape.begin(), mixture.num_experts);
      }
      layer.parameters.push_back({mixture.grouped
                                      ? fmt::format("experts.w{}", weight)
                                      : fmt::format("experts.{}.w{}.weight", expert, weight),
                                  std::move(shape)});
    }
  }
}

/// A weight of one expert is drawn as if it were a Linear of its own.
void fill_mixture(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const MixtureArguments mixture = read_mixture(arguments);
  layer.kind = LayerKind::mixture_of_experts;
  layer.arguments = mixture;
  if (!arguments.ok() || !is_possible_mixture(mixture, arguments)) {
    return;
  }
  const int64_t width = context.input.empty() ? 1 : context.input.back();
  if (width != mixture.embed_dim) {
    arguments.complain(fmt::format("embed_dim is {}, but the input has shape {}", mixture.embed_dim,
                                   text_of(context.input)),
                       fmt::format("set embed_dim to {}", width));
    return;
  }
  const Int128 tokens = elements_of(context.input) / width;
  if (tokens * mixture.top_k * std::max(mixture.hidden_dim, mixture.embed_dim) > most_elements ||
      Int128{mixture.hidden_dim} * mixture.embed_dim * mixture.num_experts > most_elements) {
    arguments.complain(
        fmt::format("{} experts of hidden_dim {}", mixture.num_experts, mixture.hidden_dim),
        "write smaller sizes");
    return;
  }
  layer.output = context.input;
  layer.parameters.push_back({"gate.weight", {mixture.num_experts, mixture.embed_dim}});
  add_expert_parameters(mixture, layer);
  price_mixture(layer);
}

}  // namespace

/// Each token is scored by 2 e E, and chooses `top_k` experts of 2 e h for each of their products;
/// with a capacity factor below 1 some choices are dropped even if all experts are chosen alike.
/// Beside the products, scores are read and written as softmax, rows are copied into the order of
/// experts, and copied back, scaled and added.
void price_mixture(Layer& layer) {
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  const int64_t state = elements_of(layer.input);
  const int64_t tokens = state / mixture.embed_dim;
  const double load = std::min(1.0, mixture.capacity_factor.value_or(1));
  const auto choices =
      static_cast<int64_t>(std::llround(static_cast<double>(tokens * mixture.top_k) * load));
  const int64_t sent = choices * mixture.embed_dim;
  const int64_t hidden = choices * mixture.hidden_dim;
  const int64_t scores = tokens * mixture.num_experts;
  const bool is_gated = mixture.expert == ExpertKind::swiglu;
  const Int128 products = Int128{2} * mixture.weights_per_expert() * sent * mixture.hidden_dim +
                          Int128{2} * state * mixture.num_experts;
  const Flops flops(narrow_to_int64(products));
  const int64_t routed = state + 3 * scores + 2 * sent + 3 * sent + state;
  const int64_t read = sent * mixture.tensor_ranks;  // by ranks that compute an expert together
  const int64_t computed = is_gated ? 3 * read + 8 * hidden : 2 * read + 4 * hidden;
  const int64_t computed_back = is_gated ? 6 * read + 12 * hidden : 2 * read + 5 * hidden;
  layer.work = {Work{flops, routed + computed}, Work{flops, 2 * routed + computed_back},
                Work{flops, state + scores + (is_gated ? 3 : 2) * (read + hidden)}};
  // Kept: the rows that experts read, what each of their kernels reads, and what they gave, which
  // the gradient of the weights needs; in fp32 the probabilities and the chosen ones, and indices.
  layer.saves.input = true;
  layer.saves.elements = sent + read + (is_gated ? 4 : 2) * hidden;
  layer.saves.fixed = 4_B * scores + 12_B * (tokens * mixture.top_k) + 8_B * choices;
}

const MixtureArguments& mixture_arguments(const Network& network, size_t layer) {
  return std::get<MixtureArguments>(network.layers[layer].arguments);
}

bool has_mixtures(const Network& network) {
  return std::ranges::any_of(network.layers, [](const Layer& layer) {
    return layer.kind == LayerKind::mixture_of_experts;
  });
}

Network with_grouped_experts(Network network) {
  for (Layer& layer : network.layers) {
    auto* mixture = std::get_if<MixtureArguments>(&layer.arguments);
    if (mixture == nullptr || mixture->grouped) {
      continue;
    }
    mixture->grouped = true;
    const std::vector<ParameterTensor> apart =
        std::exchange(layer.parameters, std::vector<ParameterTensor>{layer.parameters.front()});
    add_expert_parameters(*mixture, layer);
    for (size_t weight = 1; weight < layer.parameters.size(); ++weight) {
      layer.parameters[weight].trainable = apart[weight].trainable;
    }
  }
  account(network);
  return network;
}

bool has_auxiliary_loss(const Network& network) {
  return std::ranges::any_of(network.layers, [](const Layer& layer) {
    const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments);
    return mixture != nullptr && mixture->aux_loss_coef > 0;
  });
}

bool are_experts_divided(const Layer& layer) {
  const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments);
  return mixture != nullptr && mixture->is_divided();
}

bool are_experts_divided(const Network& network) {
  return std::ranges::any_of(network.layers,
                             [](const Layer& layer) { return are_experts_divided(layer); });
}

int64_t active_parameter_elements(const Network& network) {
  int64_t active = network.parameter_elements();
  for (const Layer& layer : network.layers) {
    if (const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments)) {
      const int64_t expert =
          mixture->weights_per_expert() * mixture->hidden_dim * mixture->embed_dim;
      active -= expert * (mixture->num_experts - mixture->top_k);
    }
  }
  return active;
}

std::vector<LayerKindEntry> mixture_layer_kinds() {
  return {{"MixtureOfExperts", {"embed_dim", "hidden_dim", "num_experts", "top_k"}, fill_mixture}};
}

}  // namespace lockstep
