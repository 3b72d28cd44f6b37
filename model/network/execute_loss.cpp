// Losses.
#include "model/core/ensure.hpp"
#include "model/network/arithmetic/contrastive_loss.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "model/network/arithmetic/loss_part.hpp"
#include "model/network/arithmetic/pointwise_loss.hpp"
#include "model/network/contrastive_part.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

LossFunction function_of(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::l1_loss: return LossFunction::l1;
    case LayerKind::smooth_l1_loss: return LossFunction::smooth_l1;
    case LayerKind::huber_loss: return LossFunction::huber;
    case LayerKind::bce_loss: return LossFunction::bce;
    case LayerKind::bce_with_logits_loss: return LossFunction::bce_with_logits;
    case LayerKind::kl_div_loss:
      return std::get<LossArguments>(layer.arguments).log_target ? LossFunction::kl_div_log
                                                                 : LossFunction::kl_div;
    default: break;
  }
  ensure(false, "a loss that compares element by element");
  return LossFunction::l1;
}

PointwiseLoss pointwise_loss(const Layer& layer, int64_t elements) {
  const auto& arguments = std::get<LossArguments>(layer.arguments);
  const auto count = static_cast<double>(elements);
  const auto of_sample = static_cast<double>(elements_of(layer.input));
  return {function_of(layer), arguments.threshold,
          arguments.mean         ? count
          : arguments.batch_mean ? count / of_sample
                                 : 1};
}

void class_loss(bool is_forward, const Layer& layer, LayerCall& call) {
  const bool mean = std::get<LossArguments>(layer.arguments).mean;
  const LossReduction reduction = mean ? LossReduction::mean : LossReduction::sum;
  const int64_t classes = layer.input.back();
  if (layer.kind == LayerKind::nll_loss) {
    if (is_forward) {
      nll_forward(call.read(0), call.read(1), classes, mean, call.write(0));
    } else {
      nll_backward(call.read(0), call.read(1), classes, mean, call.scalar(0), call.write(0));
    }
  } else if (is_forward) {
    cross_entropy_forward(call.read(0), call.read(1), classes, reduction, call.write(0));
  } else {
    cross_entropy_backward(call.read(0), call.read(1), classes, reduction, call.scalar(0),
                           call.write(0));
  }
}

/// Cross entropy of which this rank has the scores of some classes.
void loss_of_part(bool is_forward, const Layer& layer, LayerCall& call) {
  const bool mean = std::get<LossArguments>(layer.arguments).mean;
  const ClassPart part{layer.input.back(), static_cast<int64_t>(call.scalar(1)),
                       std::get<LossArguments>(layer.arguments).parts};
  if (!is_forward) {
    loss_part_backward({call.read(0), call.read(1), call.read(2), call.read(3)}, part, mean,
                       call.scalar(0), call.write(0));
    return;
  }
  switch (static_cast<LossPart>(call.scalar(0))) {
    case LossPart::greatest: greatest_of_rows(call.read(0), part.classes, call.write(0)); return;
    case LossPart::terms:
      loss_terms(call.read(0), call.read(1), call.read(2), part, call.write(0), call.write(1));
      return;
    case LossPart::loss:
      loss_of_terms(call.read(0), call.read(1), call.read(2), mean, call.write(0));
      return;
  }
}

ComparisonKind comparison_kind_of(LayerKind loss) {
  switch (loss) {
    case LayerKind::info_nce_loss: return ComparisonKind::info_nce;
    case LayerKind::clip_loss: return ComparisonKind::both_ways;
    case LayerKind::sig_lip_loss: return ComparisonKind::pairs;
    case LayerKind::sup_con_loss: return ComparisonKind::labels;
    default: return ComparisonKind::nt_xent;
  }
}

/// A loss that compares the views of samples with each other, in the steps of ContrastivePart.
void comparison(bool is_forward, const Layer& layer, LayerCall& call) {
  const int64_t features = layer.input.back();
  const size_t behind_factor = is_forward ? 0 : 1;
  const auto part = static_cast<ContrastivePart>(call.scalar(behind_factor));
  if (part == ContrastivePart::views) {
    if (is_forward) {
      normalised_views(call.read(0), features, call.write(0), call.write(1));
    } else {
      views_backward(call.read(0), features,
                     {call.read(1), call.read(2), call.read(3), call.read(4)}, call.write(0));
    }
    return;
  }
  const auto& arguments = std::get<LossArguments>(layer.arguments);
  ComparedViews views{call.read(0),
                      call.read(1),
                      call.read(2),
                      call.read(3),
                      features,
                      static_cast<int64_t>(call.scalar(behind_factor + 1)),
                      arguments.temperature,
                      comparison_kind_of(layer.kind)};
  if (views.kind == ComparisonKind::pairs) {
    views.bias = arguments.threshold;
  } else if (views.kind == ComparisonKind::labels) {
    views.factor = arguments.threshold;
    views.labels = &call.read(4);
  }
  if (is_forward) {
    contrastive_forward(views, call.write(0));
  } else {
    contrastive_backward(views, call.scalar(0),
                         {call.write(0), call.write(1), call.write(2), call.write(3)});
  }
}

}  // namespace

void execute_loss(bool is_forward, const Layer& layer, LayerCall& call) {
  const auto* arguments = std::get_if<LossArguments>(&layer.arguments);
  if (arguments != nullptr && arguments->parts > 1) {
    loss_of_part(is_forward, layer, call);
  } else if (compares_samples(layer.kind)) {
    comparison(is_forward, layer, call);
  } else if (has_class_targets(layer.kind)) {
    class_loss(is_forward, layer, call);
  } else if (layer.kind == LayerKind::mse_loss) {
    const LossReduction reduction =
        std::get<LossArguments>(layer.arguments).mean ? LossReduction::mean : LossReduction::sum;
    if (is_forward) {
      mse_forward(call.read(0), call.read(1), reduction, call.write(0));
    } else {
      mse_backward(call.read(0), call.read(1), reduction, call.scalar(0), call.write(0));
    }
  } else {
    const PointwiseLoss loss = pointwise_loss(layer, call.read(0).size());
    if (is_forward) {
      pointwise_loss_forward(call.read(0), call.read(1), loss, call.write(0));
    } else {
      pointwise_loss_backward(call.read(0), call.read(1), loss, call.scalar(0), call.write(0));
    }
  }
  call.store();
}

}  // namespace lockstep
