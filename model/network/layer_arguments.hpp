#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/network/tensor_cut.hpp"

namespace lockstep {

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
struct StochasticDepthArguments {
  double p = 0;
  bool of_batch = false;  ///< one draw for all samples; else one for each
};
struct ScaleArguments {
  double factor = 1;
};
struct LayerScaleArguments {
  Shape shape{};  ///< as many dimensions as the input, each as long or 1
};
struct PermuteArguments {
  std::vector<size_t> order{};  ///< dimension i of the output is dimension order[i] of the input
};
struct AttentionArguments {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  double dropout = 0;
  bool bias = true;
  bool causal = false;  ///< of a core alone; the kinds of whole layers say it themselves
};
struct PositionsArguments {
  int64_t first = 0;
  int64_t count = 0;
};
/// Of distances of two positions: half of the buckets, or of either direction, are for one distance
/// each, the others for ranges that grow up to `max_distance` (Raffel et al. 2020).
struct RelativePositionBiasArguments {
  int64_t num_heads = 0;
  int64_t num_buckets = 32;
  int64_t max_distance = 128;
  bool bidirectional = true;
};
/// Of attention that reads what was put aside: BiasedAttention and CrossAttention.
struct AsideAttentionArguments {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t source_dim = 0;  ///< width of what key and value are made of
  bool causal = false;
  bool scaled = true;  ///< scores by 1 / sqrt(head_dim)
  bool bias = true;
  int64_t width() const { return num_heads * head_dim; }
};
/// The image is [height, width, channels].
struct WindowAttentionArguments {
  int64_t dim = 0;
  int64_t num_heads = 0;
  Pair window_size{7, 7};
  Pair shift_size{0, 0};
  bool qkv_bias = true;
  bool proj_bias = true;
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
  /// Where query and key are normalised in each head before they are turned, as in Qwen3: `eps`.
  std::optional<double> qk_norm_eps{};
  int64_t query_width() const { return num_heads * head_dim; }
  int64_t key_width() const { return num_kv_heads * head_dim; }
};
struct SwigluArguments {
  int64_t embed_dim = 0;
  int64_t hidden_dim = 0;
  bool bias = false;
  bool gelu = false;  ///< of the gate, by its tanh approximation; else SiLU
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
  int32_t tensor_ranks = 1;  ///< that compute each expert together, by its hidden features
  bool is_divided() const { return ranks * tensor_ranks > 1; }
  int64_t weights_per_expert() const { return expert == ExpertKind::swiglu ? 3 : 2; }
  int64_t own_experts() const { return num_experts / ranks; }
  int64_t own_hidden_dim() const { return hidden_dim / tensor_ranks; }
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
  bool mean = true;  ///< else the sum
  /// `beta` of SmoothL1Loss, `delta` of HuberLoss, `bias` of SigLipLoss; of SupConLoss the factor
  /// temperature / base_temperature.
  double threshold = 1;
  bool batch_mean = false;       ///< of KLDivLoss: the sum over the number of samples
  bool log_target = false;       ///< of KLDivLoss: the targets are logarithms
  int32_t parts = 1;             ///< of the classes: each of so many ranks has the scores of one
  double temperature = 0.5;      ///< of a loss that compares samples
  bool gathers_samples = false;  ///< of such a loss: those of all ranks are compared
};
using LayerArguments =
    std::variant<std::monostate, LinearArguments, BiasArguments, EmbeddingArguments,
                 BatchNormArguments, LayerNormArguments, RmsNormArguments, GroupNormArguments,
                 Conv2dArguments, ConvTranspose2dArguments, Pool2dArguments,
                 AdaptivePool2dArguments, LeakyReluArguments, SoftmaxArguments, GeluArguments,
                 DropoutArguments, StochasticDepthArguments, LayerScaleArguments, PermuteArguments,
                 ScaleArguments, PositionsArguments, RelativePositionBiasArguments,
                 AttentionArguments, AsideAttentionArguments, WindowAttentionArguments,
                 GroupedQueryArguments, SwigluArguments, MixtureArguments, LstmArguments,
                 UpsampleArguments, PatchSequenceArguments, ExchangeArguments, CostArguments,
                 LossArguments>;

}  // namespace lockstep
