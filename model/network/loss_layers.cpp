// Losses.
#include <fmt/format.h>

#include <cmath>

#include "model/network/arithmetic/loss.hpp"
#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

bool reads_mean(ArgumentReader& arguments) {
  const std::string reduction = arguments.text("reduction", "mean");
  if (reduction == "none") {
    arguments.lack("a loss of many elements (`reduction: none`) is not modelled",
                   "write mean or sum");
    return true;
  }
  if (reduction != "mean" && reduction != "sum") {
    arguments.complain(fmt::format("a loss cannot be reduced by `{}`", reduction),
                       "write mean or sum");
  }
  return reduction == "mean";
}

// Scores of one prediction, or of one for each position with the classes last, as language models
// flatten them. torch's own form [classes, height, width] would need the dimensions exchanged.
// Softmax reads and writes every score; its logarithm is what backward needs.
void fill_scores(std::string_view name, const LayerContext& context, ArgumentReader& arguments,
                 Layer& layer) {
  arguments.only("ignore_index", ignored_target);
  layer.arguments = LossArguments{reads_mean(arguments)};
  layer.output = {};
  if (context.input.empty() || context.input.size() > 2) {
    arguments.complain(fmt::format("{} takes [classes] or [positions, classes], the network's "
                                   "output has shape {}",
                                   name, text_of(context.input)),
                       "end the network in a Linear with one output per class, or use MSELoss");
  }
}

void fill_cross_entropy(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::cross_entropy_loss;
  arguments.only("label_smoothing", 0.0);
  fill_scores("CrossEntropyLoss", context, arguments, layer);
  if (!arguments.ok()) {
    return;
  }
  const int64_t elements = elements_of(context.input);
  layer.work = {Work{.elements = 2 * elements}, Work{.elements = 2 * elements},
                Work{.runs = false}};
  layer.saves.elements = elements;
}

// The logarithms of probabilities that the network ends in: only one of each row is read, but the
// gradient is written whole.
void fill_nll(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::nll_loss;
  fill_scores("NLLLoss", context, arguments, layer);
  if (!arguments.ok()) {
    return;
  }
  const int64_t elements = elements_of(context.input);
  const int64_t rows = elements / context.input.back();
  layer.work = {Work{.elements = rows}, Work{.elements = elements + rows}, Work{.runs = false}};
  layer.saves.input = true;
}

/// Reads two tensors and writes one number; backward reads both again and writes the gradient.
void be_pointwise_loss(const LayerContext& context, LayerKind kind, const LossArguments& loss,
                       Layer& layer) {
  layer.kind = kind;
  layer.arguments = loss;
  layer.output = {};
  const int64_t elements = elements_of(context.input);
  layer.work = {Work{.elements = 2 * elements}, Work{.elements = 3 * elements},
                Work{.runs = false}};
  layer.saves.input = true;
}

void fill_pointwise_loss(const LayerContext& context, ArgumentReader& arguments, LayerKind kind,
                         double threshold, Layer& layer) {
  be_pointwise_loss(context, kind, {.mean = reads_mean(arguments), .threshold = threshold}, layer);
}

void fill_mse(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  fill_pointwise_loss(context, arguments, LayerKind::mse_loss, 1, layer);
}

void fill_l1(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  fill_pointwise_loss(context, arguments, LayerKind::l1_loss, 1, layer);
}

void fill_smooth_l1(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const double beta = arguments.number("beta", 1);
  if (!(beta >= 0)) {
    arguments.complain(fmt::format("SmoothL1Loss with a beta of {}", beta), "write 0 or more");
  }
  fill_pointwise_loss(context, arguments, LayerKind::smooth_l1_loss, beta, layer);
}

void fill_huber(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const double delta = arguments.number("delta", 1);
  if (!(delta > 0)) {
    arguments.complain(fmt::format("HuberLoss with a delta of {}", delta), "write more than 0");
  }
  fill_pointwise_loss(context, arguments, LayerKind::huber_loss, delta, layer);
}

void fill_bce(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  fill_pointwise_loss(context, arguments, LayerKind::bce_loss, 1, layer);
}

void fill_bce_with_logits(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  fill_pointwise_loss(context, arguments, LayerKind::bce_with_logits_loss, 1, layer);
}

void fill_kl_div(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LossArguments loss{.log_target = arguments.boolean("log_target", false)};
  loss.batch_mean = arguments.text("reduction", "mean") == "batchmean";
  loss.mean = !loss.batch_mean && reads_mean(arguments);
  be_pointwise_loss(context, LayerKind::kl_div_loss, loss, layer);
}

// What autograd keeps and what the kernels move grows with the square of the batch:
// SampleComparison counts it.
void be_comparison(const LayerContext& context, LayerKind kind, std::string_view name,
                   const LossArguments& loss, ArgumentReader& arguments, Layer& layer) {
  layer.kind = kind;
  layer.arguments = loss;
  layer.output = {};
  constexpr double least_temperature = 1e-8;  // lightly, NTXentLoss.__init__
  if (!(std::abs(loss.temperature) >= least_temperature)) {
    arguments.complain(fmt::format("Illegal temperature: abs({}) < 1e-8", loss.temperature),
                       "write 0.5");
  }
  if (context.input.size() != 2 || context.input.front() != 2) {
    arguments.complain(
        fmt::format("{} compares two views of each sample, [2, features]; the network's output "
                    "has shape {}",
                    name, text_of(context.input)),
        "give samples of two views, such as input: [2, 32], and layers that work on the last "
        "dimension");
    return;
  }
  const int64_t elements = elements_of(context.input);
  layer.work = {Work{.elements = 3 * elements}, Work{.elements = 5 * elements},
                Work{.runs = false}};
  layer.saves.input = true;
}

LossArguments with_temperature(ArgumentReader& arguments, double otherwise) {
  LossArguments loss;
  loss.temperature = arguments.number("temperature", otherwise);
  return loss;
}

void fill_nt_xent(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LossArguments loss = with_temperature(arguments, 0.5);
  loss.gathers_samples = arguments.boolean("gather_distributed", false);
  arguments.only("memory_bank_size", int64_t{0});
  be_comparison(context, LayerKind::nt_xent_loss, "NTXentLoss", loss, arguments, layer);
}

// info-nce-pytorch, without explicit negatives: those of the batch.
void fill_info_nce(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const LossArguments loss = with_temperature(arguments, 0.1);
  be_comparison(context, LayerKind::info_nce_loss, "InfoNCE", loss, arguments, layer);
}

// open_clip with a fixed scale; where it gathers, with local_loss and gather_with_grad.
void fill_clip(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LossArguments loss = with_temperature(arguments, 0.07);
  loss.gathers_samples = arguments.boolean("gather_distributed", false);
  be_comparison(context, LayerKind::clip_loss, "ClipLoss", loss, arguments, layer);
}

// open_clip with the scale and the bias with which training begins.
void fill_sig_lip(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LossArguments loss = with_temperature(arguments, 0.1);
  loss.threshold = arguments.number("bias", -10);
  be_comparison(context, LayerKind::sig_lip_loss, "SigLipLoss", loss, arguments, layer);
}

// SupContrast, with contrast_mode all.
void fill_sup_con(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  LossArguments loss = with_temperature(arguments, 0.07);
  const double base = arguments.number("base_temperature", 0.07);
  if (!(base != 0)) {
    arguments.complain("SupConLoss with a base_temperature of 0", "write 0.07");
  }
  loss.threshold = loss.temperature / base;
  be_comparison(context, LayerKind::sup_con_loss, "SupConLoss", loss, arguments, layer);
}

}  // namespace

std::vector<LayerKindEntry> loss_layer_kinds() {
  return {
      {"CrossEntropyLoss", {}, fill_cross_entropy},
      {"NLLLoss", {}, fill_nll},
      {"MSELoss", {}, fill_mse},
      {"L1Loss", {}, fill_l1},
      {"SmoothL1Loss", {}, fill_smooth_l1},
      {"HuberLoss", {}, fill_huber},
      {"BCELoss", {}, fill_bce},
      {"BCEWithLogitsLoss", {}, fill_bce_with_logits},
      {"KLDivLoss", {}, fill_kl_div},
      {"NTXentLoss", {}, fill_nt_xent},
      {"InfoNCE", {}, fill_info_nce},
      {"ClipLoss", {}, fill_clip},
      {"SigLipLoss", {}, fill_sig_lip},
      {"SupConLoss", {}, fill_sup_con},
  };
}

}  // namespace lockstep
