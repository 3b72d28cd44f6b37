#include "io/scenario/classes/other_classes.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "model/metric/torchmetrics_names.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_names.hpp"

namespace lockstep {
namespace {

using Names = std::span<const std::string_view>;

constexpr auto other_optimizers = std::to_array<std::string_view>({
    // torch.optim
    "LBFGS",
    "Muon",
    "SparseAdam",
    // DeepSpeed, Apex, bitsandbytes, timm, FairScale
    "FusedSGD",
    "FusedLAMB",
    "OnebitAdam",
    "ZeroOneAdam",
    "OnebitLamb",
    "Adam8bit",
    "AdamW8bit",
    "PagedAdamW",
    "LAMB",
    "FusedLamb",
    "LARS",
    "OSS",
    "AdamP",
    "SGDP",
    "AdaBelief",
    "Lookahead",
    "RAdamScheduleFree",
    "AdamWScheduleFree",
    "Shampoo",
});

constexpr auto other_schedulers = std::to_array<std::string_view>({
    "SWALR",
    "LRScheduler",
    "_LRScheduler",
    "LinearWarmupCosineAnnealingLR",
    "NoamLR",
    "CosineLRScheduler",
    "get_cosine_with_hard_restarts_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_wsd_schedule",
});

constexpr auto other_losses = std::to_array<std::string_view>({
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
});

constexpr auto other_layers = std::to_array<std::string_view>({
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool3d",
    "Bilinear",
    "CELU",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineSimilarity",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "ELU",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GLU",
    "GRU",
    "GRUCell",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyLinear",
    "LeakyReLU",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MaxPool1d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "ModuleDict",
    "ModuleList",
    "PReLU",
    "PairwiseDistance",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "RNN",
    "RNNCell",
    "RReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "SELU",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
});

// Beside those of Lightning, which model/trainer/framework lists.
constexpr auto other_strategies = std::to_array<std::string_view>({"RayStrategy"});

constexpr auto other_callbacks = std::to_array<std::string_view>({
    "BaseFinetuning",
    "BasePredictionWriter",

    "Checkpoint",
    "GPUStatsMonitor",
    "LambdaCallback",
    "ProgressBar",
    "ProgressBarBase",
    "QuantizationAwareTraining",
    "XLAStatsMonitor",
});

constexpr auto other_loggers = std::to_array<std::string_view>({
    "ClearMLLogger",
    "DummyLogger",
    "LitLogger",
    "LoggerCollection",
    "TestTubeLogger",
});

constexpr auto other_profilers = std::to_array<std::string_view>({"XLAProfiler", "xla"});

constexpr auto other_plugins = std::to_array<std::string_view>({
    "ApexMixedPrecisionPlugin",
    "BitsandbytesPrecision",
    "ClusterEnvironment",
    "DeepSpeedPrecisionPlugin",
    "DoublePrecisionPlugin",
    "FSDPMixedPrecisionPlugin",
    "HPUCheckpointIO",
    "HPUPrecisionPlugin",
    "IPUPrecisionPlugin",
    "LayerSync",
    "NativeMixedPrecisionPlugin",
    "Precision",
    "PrecisionPlugin",
    "RPCPlugin",
    "ShardedNativeMixedPrecisionPlugin",
    "TPUBf16PrecisionPlugin",
    "TPUPrecisionPlugin",
    "TransformerEnginePrecision",
    "XLACheckpointIO",
    "XLAEnvironment",
    "XLAPrecision",
});

constexpr auto other_launchers = std::to_array<std::string_view>({
    "accelerate",
    "colossalai",
    "deepspeed",
    "jsrun",
    "mpiexec",
    "ray",
    "submitit",
});

// Of torch and Tensor, which a LightningModule may call and expressions do not have.
constexpr auto functions = std::to_array<std::string_view>({
    "all",     "any",     "argmax",      "argmin",      "argsort",    "bmm",           "cat",
    "ceil",    "chunk",   "clamp",       "clip",        "cos",        "cross_entropy", "cumprod",
    "cumsum",  "dot",     "dropout",     "einsum",      "eq",         "erf",           "flatten",
    "floor",   "gather",  "gelu",        "inverse",     "linear",     "linspace",      "log10",
    "log1p",   "log2",    "log_softmax", "logsumexp",   "matmul",     "maximum",       "median",
    "minimum", "mm",      "mse_loss",    "multinomial", "nll_loss",   "nonzero",       "norm",
    "one_hot", "ones",    "ones_like",   "permute",     "pow",        "prod",          "quantile",
    "rand",    "randint", "randn",       "randperm",    "relu",       "reshape",       "round",
    "rsqrt",   "scatter", "sigmoid",     "sign",        "sin",        "sort",          "split",
    "square",  "squeeze", "stack",       "std",         "tan",        "tanh",          "tensor",
    "tile",    "topk",    "transpose",   "tril",        "triu",       "unique",        "unsqueeze",
    "var",     "view",    "where",       "zeros",       "zeros_like",
});

Names others(ObjectRole role) {
  switch (role) {
    case ObjectRole::strategy: return other_strategies;
    case ObjectRole::callback: return other_callbacks;
    case ObjectRole::optimizer: return other_optimizers;
    case ObjectRole::lr_scheduler: return other_schedulers;
    case ObjectRole::metric: return {};
    case ObjectRole::loss: return other_losses;
    case ObjectRole::layer: return other_layers;
    case ObjectRole::launcher: return other_launchers;
    case ObjectRole::logger: return other_loggers;
    case ObjectRole::profiler: return other_profilers;
    case ObjectRole::plugin: return other_plugins;
  }
  return {};
}

bool is_additional_strategy(std::string_view name) {
  return std::ranges::any_of(additional_strategies(), [name](const StrategyEntry& entry) {
    return entry.name == name || entry.class_name == name;
  });
}

bool holds(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool is_other_class(ObjectRole role, std::string_view name) {
  if (role == ObjectRole::strategy && is_additional_strategy(name)) {
    return true;
  }
  const bool is_of_strategies = role == ObjectRole::strategy || role == ObjectRole::plugin;
  if (is_of_strategies && find_strategy_name(name) != nullptr) {
    return true;
  }
  return role == ObjectRole::metric ? find_torchmetrics_class(name).has_value()
                                    : holds(others(role), name);
}

bool is_other_function(std::string_view name) { return holds(functions, name); }

std::string_view remedy_of_own_class(ObjectRole role) {
  switch (role) {
    case ObjectRole::callback: return "a callback of your own: write its hooks under `program`";
    case ObjectRole::layer:
      return "a layer of your own: {Cost: {parameters: 1000, forward: 1 ms, backward: 2 ms}}, or "
             "the layers that it consists of";
    case ObjectRole::metric:
      return "a metric of your own: compute it in the hooks of `program`, with all_reduce";
    default: return "";
  }
}

std::vector<std::string_view> known_classes(ObjectRole role) {
  std::vector<std::string_view> names;
  for (const ClassRow& row : classes(role)) {
    names.push_back(row.name);
  }
  names.insert(names.end(), others(role).begin(), others(role).end());
  if (role == ObjectRole::strategy) {
    for (const StrategyName& strategy : strategy_names()) {
      names.push_back(strategy.name);
    }
  }
  if (role == ObjectRole::metric) {
    for (const TorchMetricsName& metric : torchmetrics_classes()) {
      names.push_back(metric.name);
    }
  }
  return names;
}

}  // namespace lockstep
