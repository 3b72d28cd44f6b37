#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/network/context_part.hpp"
#include "model/network/layer_arguments.hpp"
#include "model/network/tensor_cut.hpp"

namespace lockstep {

/// Product of the sizes; 1 for a scalar. Throws QuantityOverflow.
int64_t elements_of(const Shape& shape);
/// "[3, 224, 224]"
std::string text_of(const Shape& shape);

/// The kind of a layer. Names and arguments are those of torch.nn; the residual kinds mark where
/// a skip connection of the flattened network leaves, changes branch and returns.
enum class LayerKind : uint8_t {
  linear,
  bias,  ///< y = x + b over the last dimension
  relu,
  relu6,
  leaky_relu,
  gelu,
  silu,
  hardswish,
  sigmoid,
  hardsigmoid,
  tanh,
  softmax,
  identity,
  embedding,
  positional_embedding,  ///< adds row i of its weight to position i, as GPT-2's wpe
  batch_norm,            ///< BatchNorm1d, BatchNorm2d and BatchNorm3d
  layer_norm,
  rms_norm,
  group_norm,
  scale,        ///< multiplies by a constant
  layer_scale,  ///< multiplies by a parameter, as ConvNeXt and CaiT do
  conv1d,
  conv2d,
  conv_transpose2d,
  max_pool2d,
  avg_pool2d,
  adaptive_avg_pool2d,
  flatten,
  dropout,
  stochastic_depth,         ///< drops the branch of a residual, for each sample by itself
  multihead_attention,      ///< self-attention: query = key = value = input
  causal_self_attention,    ///< the same with a causal mask, parameters named as in GPT-2
  grouped_query_attention,  ///< causal, rotary, several query heads for each key; named as in Llama
  relative_position_bias,   ///< of T5: a number for each head and pair of positions
  biased_attention,         ///< self-attention that adds what was put aside to its scores, as T5
  cross_attention,          ///< of the input to what was put aside, as a decoder's
  window_attention,         ///< in windows of an image, as Swin; named as in torchvision
  attention_core,           ///< of query, key and value side by side: scores, softmax, weighted sum
  attention_projections,    ///< of grouped attention: turned query and key, and value, side by side
  swiglu,                   ///< gated feed-forward, W_down (silu(W_gate x) * W_up x)
  mixture_of_experts,       ///< a router, and the feed-forwards that it sends each token to
  lstm,
  upsample,              ///< of images, to the nearest element
  patch_sequence,        ///< an image's pixels as positions of a sequence, behind a class token
  first_position,        ///< of a sequence
  positions,             ///< some of a sequence
  permute,               ///< the dimensions of a sample in a different order
  patch_merging,         ///< four neighbours of an image side by side, as Swin
  residual_begin,        ///< remembers its input
  residual_shortcut,     ///< puts the result aside and continues from what was remembered
  residual_add,          ///< adds what was remembered, or put aside
  residual_concatenate,  ///< puts what was remembered before the result, channel by channel
  residual_multiply,     ///< multiplies what was remembered by the result
  aside_end,             ///< what was put aside is not read behind it
  exchange,              ///< between ranks that compute the layers around it together
  buffer,                ///< only holds a buffer (register_buffer)
  cost,                  ///< known only by its price
  cross_entropy_loss,
  nll_loss,
  mse_loss,
  l1_loss,
  smooth_l1_loss,
  huber_loss,
  bce_loss,
  bce_with_logits_loss,
  kl_div_loss,
  // These compare the samples of a batch with each other.
  nt_xent_loss,   ///< each of two views with all views of the batch
  info_nce_loss,  ///< each first view with all second views
  clip_loss,      ///< the same both ways
  sig_lip_loss,   ///< each pair of a first and a second view by itself
  sup_con_loss,   ///< each view with all views, of which those of its label belong to it
};
inline constexpr LayerKind last_layer_kind = LayerKind::sup_con_loss;
std::string_view name_of(LayerKind kind);
/// Two branches of a skip connection meet there.
bool joins_branches(LayerKind kind);
/// The same, or the end of what reads a tensor that was put aside.
bool ends_residual(LayerKind kind);
/// A mark of the flattened network, which is no module.
bool is_marker(LayerKind kind);
/// Each element of the output follows from that element of the input, or of both branches.
bool treats_elements_alike(LayerKind kind);
/// It turns output and target into one number, and stands under `loss`.
bool is_loss(LayerKind kind);
/// A loss whose targets are whole numbers: a class for each row of scores, or a label.
bool has_class_targets(LayerKind kind);
/// A loss of a batch that is no mean over losses of its samples.
bool compares_samples(LayerKind kind);

/// The numbers with which a tensor starts, in row-major order; one number is for every element.
using InitialNumbers = std::shared_ptr<const std::vector<double>>;

/// A parameter tensor. It belongs to exactly one layer.
struct ParameterTensor {
  std::string name{};  ///< within its layer: "weight", "out_proj.bias"
  Shape shape{};
  bool trainable = true;
  InitialNumbers initial{};          ///< null: drawn, or as the kind of the layer begins
  std::optional<TensorCut> cut{};    ///< where it is one rank's part of a tensor
  bool gradient_is_partial = false;  ///< each of the ranks that cut has a term of its gradient
  int64_t elements() const { return elements_of(shape); }
};

/// State that is no parameter: running statistics, counters, masks.
struct BufferTensor {
  std::string name{};
  Shape shape{};
  DType dtype = DType::fp32;
  InitialNumbers initial{};
  int64_t elements() const { return elements_of(shape); }
  Bytes byte_size() const { return Bytes(size_of(dtype)) * elements(); }
};

/// The kernels of a layer: one forward, and of the backward the part that is passed to the layer
/// before and the part that fills the gradient buffers.
enum class Pass : uint8_t { forward, input_gradient, weight_gradient };

/// Cost of one pass for one sample.
struct Work {
  /// Counts only matrix products and convolutions; a multiply-add is 2, as in model FLOPs
  /// (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters").
  Flops flops{};
  /// Elements of activations and their gradients read and written in memory: what the time of a
  /// pointwise layer is based on. Parameters come on top, once for a whole batch.
  int64_t elements = 0;
  bool runs = true;  ///< false: autograd has nothing to do in this pass
};

/// Tensors that a layer's backward needs from its forward, as PyTorch's derivatives.yaml states.
struct Saves {
  bool input = false;
  bool output = false;
  bool branch = false;   ///< what a residual's end joins to its input, or what was put aside
  int64_t elements = 0;  ///< further tensors of the compute type
  Bytes fixed{};         ///< masks, indices and fp32 statistics, whatever the compute type
  bool is_view = false;  ///< the output is the input's own memory
};

/// The part of attention that selective recomputation runs again: scores, softmax, dropout and the
/// weighted sum. `elements` and `fixed` are its share of the layer's Saves.
struct AttentionCore {
  Work work{};
  int64_t elements = 0;
  Bytes fixed{};
};

/// What a layer reads beside its input: the tensor that the residual beginning at layer `begin` has
/// put aside.
struct AsideInput {
  size_t begin = 0;
  Shape shape{};
};

/// One layer of the flattened network. Sizes are for one sample.
struct Layer {
  LayerKind kind = LayerKind::linear;
  std::string name{};  ///< unique in its network: "layer1.0.conv1"
  /// The module that holds its parameters, where that is another than `name` says; else empty.
  std::string module{};
  LayerArguments arguments{};
  std::vector<ParameterTensor> parameters{};  ///< in definition order
  std::vector<BufferTensor> buffers{};
  /// The layer whose first parameter this one uses as its weight (a tied language model head).
  std::optional<size_t> tied_layer{};
  Shape input{};
  Shape output{};
  std::optional<AsideInput> aside{};
  std::array<Work, 3> work{};  ///< by Pass
  Saves saves{};
  std::optional<AttentionCore> attention_core{};
  std::optional<ContextPart> context{};  ///< where it computes by which positions it has
  /// Memory that this layer keeps between forward and backward: `kept_elements` of the
  /// compute type and `kept_fixed`. A tensor that several layers need is counted once, at the layer
  /// that made it; the network's own input is the batch and is not counted.
  int64_t kept_elements = 0;
  Bytes kept_fixed{};
  /// Kept by the forward that a checkpointed segment runs again, until this layer's backward.
  int64_t recomputed_elements = 0;
  Bytes recomputed_fixed{};
  std::optional<int> device{};  ///< the stage or device that holds it, if the user said so

  const Work& work_of(Pass pass) const { return work[static_cast<size_t>(pass)]; }
  int64_t parameter_elements() const;
  /// Elements of the weights that its kernels read, a tied weight included.
  int64_t weight_elements = 0;
  Bytes activation_bytes(DType dtype) const {
    return Bytes(size_of(dtype)) * kept_elements + kept_fixed;
  }
  Bytes recomputed_bytes(DType dtype) const {
    return Bytes(size_of(dtype)) * recomputed_elements + recomputed_fixed;
  }
  bool has_trainable_parameters() const;
};

/// What one sample is compared with: elements, and how many values each may have where the loss has
/// class targets (1: labels that it does not read).
int64_t target_elements(const Layer& loss);
int64_t target_classes(const Layer& loss);
/// Cost of one pass over a batch. A pass that does not run costs nothing.
Flops flops_of(const Layer& layer, Pass pass, int64_t batch);
/// Memory traffic: activations for every sample, weights (or their gradients) once.
Bytes moved_bytes(const Layer& layer, Pass pass, int64_t batch, DType dtype);

}  // namespace lockstep
