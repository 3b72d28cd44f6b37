#include "model/network/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
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

std::string_view name_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::linear: return "linear";
    case LayerKind::bias: return "bias";
    case LayerKind::relu: return "relu";
    case LayerKind::relu6: return "relu6";
    case LayerKind::leaky_relu: return "leaky_relu";
    case LayerKind::gelu: return "gelu";
    case LayerKind::silu: return "silu";
    case LayerKind::hardswish: return "hardswish";
    case LayerKind::sigmoid: return "sigmoid";
    case LayerKind::hardsigmoid: return "hardsigmoid";
    case LayerKind::tanh: return "tanh";
    case LayerKind::softmax: return "softmax";
    case LayerKind::identity: return "identity";
    case LayerKind::embedding: return "embedding";
    case LayerKind::positional_embedding: return "positional_embedding";
    case LayerKind::batch_norm: return "batch_norm";
    case LayerKind::layer_norm: return "layer_norm";
    case LayerKind::rms_norm: return "rms_norm";
    case LayerKind::group_norm: return "group_norm";
    case LayerKind::scale: return "scale";
    case LayerKind::layer_scale: return "layer_scale";
    case LayerKind::conv1d: return "conv1d";
    case LayerKind::conv2d: return "conv2d";
    case LayerKind::conv_transpose2d: return "conv_transpose2d";
    case LayerKind::max_pool2d: return "max_pool2d";
    case LayerKind::avg_pool2d: return "avg_pool2d";
    case LayerKind::adaptive_avg_pool2d: return "adaptive_avg_pool2d";
    case LayerKind::flatten: return "flatten";
    case LayerKind::dropout: return "dropout";
    case LayerKind::stochastic_depth: return "stochastic_depth";
    case LayerKind::multihead_attention: return "multihead_attention";
    case LayerKind::causal_self_attention: return "causal_self_attention";
    case LayerKind::grouped_query_attention: return "grouped_query_attention";
    case LayerKind::relative_position_bias: return "relative_position_bias";
    case LayerKind::biased_attention: return "biased_attention";
    case LayerKind::cross_attention: return "cross_attention";
    case LayerKind::window_attention: return "window_attention";
    case LayerKind::attention_core: return "attention_core";
    case LayerKind::attention_projections: return "attention_projections";
    case LayerKind::swiglu: return "swiglu";
    case LayerKind::mixture_of_experts: return "mixture_of_experts";
    case LayerKind::lstm: return "lstm";
    case LayerKind::upsample: return "upsample";
    case LayerKind::patch_sequence: return "patch_sequence";
    case LayerKind::first_position: return "first_position";
    case LayerKind::residual_begin: return "residual_begin";
    case LayerKind::residual_shortcut: return "residual_shortcut";
    case LayerKind::residual_add: return "residual_add";
    case LayerKind::positions: return "positions";
    case LayerKind::permute: return "permute";
    case LayerKind::patch_merging: return "patch_merging";
    case LayerKind::residual_multiply: return "residual_multiply";
    case LayerKind::aside_end: return "aside_end";
    case LayerKind::residual_concatenate: return "residual_concatenate";
    case LayerKind::exchange: return "exchange";
    case LayerKind::buffer: return "buffer";
    case LayerKind::cost: return "cost";
    case LayerKind::cross_entropy_loss: return "cross_entropy_loss";
    case LayerKind::nll_loss: return "nll_loss";
    case LayerKind::mse_loss: return "mse_loss";
    case LayerKind::l1_loss: return "l1_loss";
    case LayerKind::smooth_l1_loss: return "smooth_l1_loss";
    case LayerKind::huber_loss: return "huber_loss";
    case LayerKind::bce_loss: return "bce_loss";
    case LayerKind::bce_with_logits_loss: return "bce_with_logits_loss";
    case LayerKind::kl_div_loss: return "kl_div_loss";
  }
  return "?";
}

bool joins_branches(LayerKind kind) {
  return kind == LayerKind::residual_add || kind == LayerKind::residual_concatenate ||
         kind == LayerKind::residual_multiply;
}

bool ends_residual(LayerKind kind) { return joins_branches(kind) || kind == LayerKind::aside_end; }

bool is_marker(LayerKind kind) {
  return kind == LayerKind::residual_begin || kind == LayerKind::residual_shortcut ||
         ends_residual(kind);
}

bool is_loss(LayerKind kind) { return kind >= LayerKind::cross_entropy_loss; }

bool has_class_targets(LayerKind kind) {
  return kind == LayerKind::cross_entropy_loss || kind == LayerKind::nll_loss;
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
