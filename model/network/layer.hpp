#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/network/context_part.hpp"
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
  leaky_relu,
  gelu,
  silu,
  sigmoid,
  tanh,
  softmax,
  identity,
  embedding,
  positional_embedding,  ///< adds row i of its weight to position i, as GPT-2's wpe
  batch_norm,            ///< BatchNorm1d, BatchNorm2d and BatchNorm3d
  layer_norm,
  rms_norm,
  group_norm,
  conv1d,
  conv2d,
  conv_transpose2d,
  max_pool2d,
  avg_pool2d,
  adaptive_avg_pool2d,
  flatten,
  dropout,
  multihead_attention,      ///< self-attention: query = key = value = input
  causal_self_attention,    ///< the same with a causal mask, parameters named as in GPT-2
  grouped_query_attention,  ///< causal, rotary, several query heads for each key; named as in Llama
  attention_core,           ///< of query, key and value side by side: scores, softmax, weighted sum
  attention_projections,    ///< of grouped attention: turned query and key, and value, side by side
  swiglu,                   ///< gated feed-forward, W_down (silu(W_gate x) * W_up x)
  mixture_of_experts,       ///< a router, and the feed-forwards that it sends each token to
  lstm,
  upsample,              ///< of images, to the nearest element
  patch_sequence,        ///< an image's pixels as positions of a sequence, behind a class token
  first_position,        ///< of a sequence
  residual_begin,        ///< remembers its input
  residual_shortcut,     ///< puts the result aside and continues from what was remembered
  residual_add,          ///< adds what was remembered, or put aside
  residual_concatenate,  ///< puts what was remembered before the result, channel by channel
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
};
inline constexpr LayerKind last_layer_kind = LayerKind::kl_div_loss;
std::string_view name_of(LayerKind kind);
/// Two branches of a skip connection meet there.
bool ends_residual(LayerKind kind);
/// It turns output and target into one number, and stands under `loss`.
bool is_loss(LayerKind kind);
/// A loss whose targets are classes, one for each row of scores.
bool has_class_targets(LayerKind kind);

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

/// The arguments that the arithmetic of a layer needs, with torch's defaults.
struct LinearArguments {
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool bias = true;
};
struct BiasArguments {
  int64_t features = 0;
  int32_t shares = 1;  ///< of so many ranks each adds its share, and has the whole gradient
};
struct EmbeddingArguments {
  int64_t num_embeddings = 0;
  int64_t embedding_dim = 0;
  bool is_part = false;  ///< of the rows of a vocabulary: indices of other rows give 0
};
struct BatchNormArguments {
  int64_t num_features = 0;
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;
  bool track_running_stats = true;
};
struct LayerNormArguments {
  Shape normalized_shape{};
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};
struct RmsNormArguments {
  Shape normalized_shape{};
  std::optional<double> eps{};  ///< absent: the distance from 1 to the next number of the input
  bool elementwise_affine = true;
};
struct GroupNormArguments {
  int64_t num_groups = 0;
  int64_t num_channels = 0;
  double eps = 1e-5;
  bool affine = true;
};
/// Height first, then width.
using Pair = std::array<int64_t, 2>;
/// Of Conv1d too, whose images have a height of 1.
struct Conv2dArguments {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  Pair kernel_size{1, 1};
  Pair stride{1, 1};
  Pair padding{0, 0};
  Pair dilation{1, 1};
  int64_t groups = 1;
  bool bias = true;
};
struct ConvTranspose2dArguments {
  Conv2dArguments mirrored{};  ///< the convolution that turns the output's shape into the input's
  Pair output_padding{0, 0};
};
struct Pool2dArguments {
  Pair kernel_size{1, 1};
  Pair stride{1, 1};  ///< defaults to the kernel size, as in torch
  Pair padding{0, 0};
};
struct AdaptivePool2dArguments {
  Pair output_size{1, 1};
};
struct LeakyReluArguments {
  double negative_slope = 0.01;
};
struct SoftmaxArguments {
  int64_t dimension = 0;  ///< of a sample, from 0
};
struct GeluArguments {
  bool tanh = false;  ///< the approximation of GPT-2
};
struct DropoutArguments {
  double p = 0.5;
};
struct AttentionArguments {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  double dropout = 0;
  bool bias = true;
  bool causal = false;  ///< of a core alone; the kinds of whole layers say it themselves
};
/// Positions attend to themselves and to those before them.
struct GroupedQueryArguments {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  ///< divides num_heads; each serves as many query heads
  int64_t head_dim = 0;
  double rope_theta = 10000;   ///< base of the rotary embedding's wavelengths
  int64_t sliding_window = 0;  ///< positions that one attends to, itself included; 0: all before
  bool bias = false;           ///< of the output's projection
  bool qkv_bias = false;       ///< of the three others
  int64_t query_width() const { return num_heads * head_dim; }
  int64_t key_width() const { return num_kv_heads * head_dim; }
};
struct SwigluArguments {
  int64_t embed_dim = 0;
  int64_t hidden_dim = 0;
  bool bias = false;
};
/// What an expert computes between its products.
enum class ExpertKind : uint8_t {
  swiglu,  ///< w2 (silu(w1 x) * w3 x)
  gelu,    ///< w2 gelu(w1 x)
  relu,    ///< w2 relu(w1 x)
};
struct MixtureArguments {
  int64_t embed_dim = 0;
  int64_t hidden_dim = 0;
  int64_t num_experts = 0;
  int64_t top_k = 1;
  ExpertKind expert = ExpertKind::swiglu;
  bool renormalized = true;  ///< the weights of the chosen experts sum to 1
  /// An expert takes at most this many times its share of the batch's choices; absent: all.
  std::optional<double> capacity_factor{};
  double aux_loss_coef = 0;  ///< of the load-balancing loss, which enters gradients alone
  bool grouped = false;      ///< each weight of all experts is one tensor, as in torchtitan
  double imbalance = 1;      ///< assumed: tokens of the busiest rank over the mean
  int32_t ranks = 1;         ///< that divide the experts
  int64_t weights_per_expert() const { return expert == ExpertKind::swiglu ? 3 : 2; }
  int64_t own_experts() const { return num_experts / ranks; }
};
struct LstmArguments {
  int64_t input_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 1;
  bool bias = true;
};
struct UpsampleArguments {
  Pair scale_factor{1, 1};
};
struct PatchSequenceArguments {
  int64_t channels = 0;
  bool class_token = true;
};
/// What ranks that compute a layer together do with an activation, or with its gradient.
enum class TensorExchange : uint8_t {
  none,            ///< it stays as it is
  all_reduce,      ///< terms become their sum
  all_gather,      ///< parts along a dimension become the whole
  reduce_scatter,  ///< terms of the whole become parts of the sum
  split,           ///< of a whole that all of them have each keeps its part: nothing travels
};
struct ExchangeArguments {
  TensorExchange forward = TensorExchange::none;
  TensorExchange backward = TensorExchange::none;
  size_t dimension = 0;  ///< of a sample, along which parts lie
  int32_t ranks = 1;
  int32_t backward_times = 1;  ///< layers behind it whose terms of the gradient travel one by one
};
/// The prices of `Cost`, for one sample; `backward` is for both gradients, and the input gradient's
/// pass stands for it.
struct CostArguments {
  Time forward{};
  Time backward{};
  Bytes activation{};
};
struct LossArguments {
  bool mean = true;         ///< else the sum
  double threshold = 1;     ///< `beta` of SmoothL1Loss, `delta` of HuberLoss
  bool batch_mean = false;  ///< of KLDivLoss: the sum over the number of samples
  bool log_target = false;  ///< of KLDivLoss: the targets are logarithms
  int32_t parts = 1;        ///< of the classes: each of so many ranks has the scores of one
};
using LayerArguments =
    std::variant<std::monostate, LinearArguments, BiasArguments, EmbeddingArguments,
                 BatchNormArguments, LayerNormArguments, RmsNormArguments, GroupNormArguments,
                 Conv2dArguments, ConvTranspose2dArguments, Pool2dArguments,
                 AdaptivePool2dArguments, LeakyReluArguments, SoftmaxArguments, GeluArguments,
                 DropoutArguments, AttentionArguments, GroupedQueryArguments, SwigluArguments,
                 MixtureArguments, LstmArguments, UpsampleArguments, PatchSequenceArguments,
                 ExchangeArguments, CostArguments, LossArguments>;

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

/// Cost of one pass over a batch. A pass that does not run costs nothing.
Flops flops_of(const Layer& layer, Pass pass, int64_t batch);
/// Memory traffic: activations for every sample, weights (or their gradients) once.
Bytes moved_bytes(const Layer& layer, Pass pass, int64_t batch, DType dtype);

}  // namespace lockstep
