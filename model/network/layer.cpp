#include "model/network/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace lockstep {

int64_t elements_of(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements = narrow_to_int64(static_cast<Int128>(elements) * size);
  }
  return elements;
}

std::string text_of(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

namespace {

struct NamedKind {
  LayerKind kind;
  std::string_view name;
};
/// In the order of the kinds.
constexpr NamedKind named_kinds[] = {
    {LayerKind::linear, "linear"},
    {LayerKind::bias, "bias"},
    {LayerKind::relu, "relu"},
    {LayerKind::relu6, "relu6"},
    {LayerKind::leaky_relu, "leaky_relu"},
    {LayerKind::gelu, "gelu"},
    {LayerKind::silu, "silu"},
    {LayerKind::hardswish, "hardswish"},
    {LayerKind::sigmoid, "sigmoid"},
    {LayerKind::hardsigmoid, "hardsigmoid"},
    {LayerKind::tanh, "tanh"},
    {LayerKind::softmax, "softmax"},
    {LayerKind::identity, "identity"},
    {LayerKind::embedding, "embedding"},
    {LayerKind::positional_embedding, "positional_embedding"},
    {LayerKind::batch_norm, "batch_norm"},
    {LayerKind::layer_norm, "layer_norm"},
    {LayerKind::rms_norm, "rms_norm"},
    {LayerKind::group_norm, "group_norm"},
    {LayerKind::scale, "scale"},
    {LayerKind::layer_scale, "layer_scale"},
    {LayerKind::conv1d, "conv1d"},
    {LayerKind::conv2d, "conv2d"},
    {LayerKind::conv_transpose2d, "conv_transpose2d"},
    {LayerKind::max_pool2d, "max_pool2d"},
    {LayerKind::avg_pool2d, "avg_pool2d"},
    {LayerKind::adaptive_avg_pool2d, "adaptive_avg_pool2d"},
    {LayerKind::flatten, "flatten"},
    {LayerKind::dropout, "dropout"},
    {LayerKind::stochastic_depth, "stochastic_depth"},
    {LayerKind::multihead_attention, "multihead_attention"},
    {LayerKind::causal_self_attention, "causal_self_attention"},
    {LayerKind::grouped_query_attention, "grouped_query_attention"},
    {LayerKind::relative_position_bias, "relative_position_bias"},
    {LayerKind::biased_attention, "biased_attention"},
    {LayerKind::cross_attention, "cross_attention"},
    {LayerKind::window_attention, "window_attention"},
    {LayerKind::attention_core, "attention_core"},
    {LayerKind::attention_projections, "attention_projections"},
    {LayerKind::swiglu, "swiglu"},
    {LayerKind::mixture_of_experts, "mixture_of_experts"},
    {LayerKind::lstm, "lstm"},
    {LayerKind::upsample, "upsample"},
    {LayerKind::patch_sequence, "patch_sequence"},
    {LayerKind::first_position, "first_position"},
    {LayerKind::positions, "positions"},
    {LayerKind::permute, "permute"},
    {LayerKind::patch_merging, "patch_merging"},
    {LayerKind::residual_begin, "residual_begin"},
    {LayerKind::residual_shortcut, "residual_shortcut"},
    {LayerKind::residual_add, "residual_add"},
    {LayerKind::residual_concatenate, "residual_concatenate"},
    {LayerKind::residual_multiply, "residual_multiply"},
    {LayerKind::aside_end, "aside_end"},
    {LayerKind::exchange, "exchange"},
    {LayerKind::buffer, "buffer"},
    {LayerKind::cost, "cost"},
    {LayerKind::cross_entropy_loss, "cross_entropy_loss"},
    {LayerKind::nll_loss, "nll_loss"},
    {LayerKind::mse_loss, "mse_loss"},
    {LayerKind::l1_loss, "l1_loss"},
    {LayerKind::smooth_l1_loss, "smooth_l1_loss"},
    {LayerKind::huber_loss, "huber_loss"},
    {LayerKind::bce_loss, "bce_loss"},
    {LayerKind::bce_with_logits_loss, "bce_with_logits_loss"},
    {LayerKind::kl_div_loss, "kl_div_loss"},
    {LayerKind::nt_xent_loss, "nt_xent_loss"},
    {LayerKind::info_nce_loss, "info_nce_loss"},
    {LayerKind::clip_loss, "clip_loss"},
    {LayerKind::sig_lip_loss, "sig_lip_loss"},
    {LayerKind::sup_con_loss, "sup_con_loss"},
};

constexpr bool are_in_order() {
  for (size_t i = 0; i < std::size(named_kinds); ++i) {
    if (named_kinds[i].kind != static_cast<LayerKind>(i)) {
      return false;
    }
  }
  return std::size(named_kinds) == static_cast<size_t>(last_layer_kind) + 1;
}
static_assert(are_in_order(), "every kind has a name");

}  // namespace

std::string_view name_of(LayerKind kind) { return named_kinds[static_cast<size_t>(kind)].name; }

bool joins_branches(LayerKind kind) {
  return kind == LayerKind::residual_add || kind == LayerKind::residual_concatenate ||
         kind == LayerKind::residual_multiply;
}

bool ends_residual(LayerKind kind) { return joins_branches(kind) || kind == LayerKind::aside_end; }

bool is_marker(LayerKind kind) {
  return kind == LayerKind::residual_begin || kind == LayerKind::residual_shortcut ||
         ends_residual(kind);
}

bool treats_elements_alike(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::relu6:
    case LayerKind::leaky_relu:
    case LayerKind::gelu:
    case LayerKind::silu:
    case LayerKind::hardswish:
    case LayerKind::sigmoid:
    case LayerKind::hardsigmoid:
    case LayerKind::tanh:
    case LayerKind::identity:
    case LayerKind::dropout:
    case LayerKind::residual_begin:
    case LayerKind::residual_shortcut:
    case LayerKind::residual_add: return true;
    default: return false;
  }
}

bool is_loss(LayerKind kind) { return kind >= LayerKind::cross_entropy_loss; }

bool has_class_targets(LayerKind kind) {
  return kind == LayerKind::cross_entropy_loss || kind == LayerKind::nll_loss ||
         compares_samples(kind);
}

bool compares_samples(LayerKind kind) {
  return kind >= LayerKind::nt_xent_loss && kind <= LayerKind::sup_con_loss;
}

int64_t Layer::parameter_elements() const {
  return std::accumulate(
      parameters.begin(), parameters.end(), int64_t{0},
      [](int64_t sum, const ParameterTensor& tensor) { return sum + tensor.elements(); });
}

bool Layer::has_trainable_parameters() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.trainable; });
}

int64_t target_elements(const Layer& loss) {
  const int64_t outputs = elements_of(loss.input);
  return compares_samples(loss.kind)    ? 1
         : has_class_targets(loss.kind) ? outputs / loss.input.back()
                                        : outputs;
}

int64_t target_classes(const Layer& loss) {
  constexpr int64_t labels = 10;  // that are drawn where the scenario gives none
  return loss.kind == LayerKind::sup_con_loss ? labels
         : compares_samples(loss.kind)        ? 1
                                              : loss.input.back();
}

Flops flops_of(const Layer& layer, Pass pass, int64_t batch) {
  const Work& work = layer.work_of(pass);
  return work.runs ? work.flops * batch : Flops(0);
}

Bytes moved_bytes(const Layer& layer, Pass pass, int64_t batch, DType dtype) {
  const Work& work = layer.work_of(pass);
  if (!work.runs) {
    return Bytes(0);
  }
  const Bytes element(size_of(dtype));
  return element * work.elements * batch + element * layer.weight_elements;
}

}  // namespace lockstep
