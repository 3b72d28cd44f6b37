#include "model/network/sizes_without_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

// It computes each element, or each row, by itself, whatever their number.
bool takes_any_size(LayerKind kind) {
  return treats_elements_alike(kind) || kind == LayerKind::softmax || kind == LayerKind::scale ||
         kind == LayerKind::stochastic_depth;
}

bool end_alike(const Shape& shape, const Shape& tail) {
  return shape.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), shape.rbegin());
}

// torch raises when the layer gets samples of this size, which is not that of the model.
bool refuses_size(const Layer& layer, const Shape& size) {
  switch (layer.kind) {
    case LayerKind::linear:
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention:
    case LayerKind::grouped_query_attention:
    case LayerKind::swiglu:
    case LayerKind::lstm: return !end_alike(size, {layer.input.back()});
    case LayerKind::layer_norm:
      return !end_alike(size, std::get<LayerNormArguments>(layer.arguments).normalized_shape);
    case LayerKind::rms_norm:
      return !end_alike(size, std::get<RmsNormArguments>(layer.arguments).normalized_shape);
    case LayerKind::conv1d:
    case LayerKind::conv2d:
    case LayerKind::batch_norm:
      return size.size() == layer.input.size() && size.front() != layer.input.front();
    default: return false;
  }
}

// torch stretches a dimension of 1 to that of the other tensor, where their numbers of dimensions
// agree.
bool cannot_broadcast(const Shape& a, const Shape& b) {
  bool differ = false;
  for (size_t i = 0; a.size() == b.size() && i < a.size(); ++i) {
    differ |= a[i] != b[i] && a[i] != 1 && b[i] != 1;
  }
  return differ;
}

// Whether the loss raises for an output of this size, which is not that of the model.
bool loss_refuses(const Layer& loss, const Shape& output) {
  switch (loss.kind) {
    case LayerKind::bce_loss:
    case LayerKind::bce_with_logits_loss: return true;
    case LayerKind::mse_loss:
    case LayerKind::l1_loss:
    case LayerKind::smooth_l1_loss:
    case LayerKind::huber_loss:
    case LayerKind::kl_div_loss: return cannot_broadcast(output, loss.input);
    default: return false;  // of classes: more scores than classes are computed
  }
}

/// Follows the size of a sample through the layers that run.
class SizesWithoutLayers {
 public:
  SizesWithoutLayers(const Network& network, const std::vector<size_t>& left_out)
      : network_(network), left_out_(left_out) {}

  void pass(size_t index) {
    const Layer& layer = network_.layers[index];
    if (now_ == modelled_) {
      now_ = layer.input;
    }
    modelled_ = layer.output;
    if (std::ranges::binary_search(left_out_, index)) {
      return;  // what comes is passed on as it is
    }
    if (is_marker(layer.kind)) {
      pass_marker(layer);
    } else if (now_ == layer.input) {
      now_ = layer.output;
    } else {
      pass_with_other_size(layer);
    }
  }

  void end_in(const Layer& loss) {
    if (now_ != modelled_) {
      const bool of_classes = has_class_targets(loss.kind);
      note(fmt::format("the loss {} an output of {} {} {} per sample",
                       of_classes ? "gets" : "compares", text_of(now_),
                       of_classes ? "in place of" : "with a target of", text_of(loss.input)),
           loss_refuses(loss, now_));
    }
  }

  bool raises() const { return conflict_ && conflict_->raises; }
  bool is_lost() const { return is_lost_; }
  const std::optional<SizeConflict>& conflict() const { return conflict_; }

 private:
  /// What a residual holds beside the tensor that flows: as it is, and as the model has it.
  struct Held {
    Shape size;
    Shape modelled;
  };

  void note(std::string message, bool raises) {
    if (!conflict_ || raises) {
      conflict_ = SizeConflict{std::move(message), raises};
    }
  }

  void pass_with_other_size(const Layer& layer) {
    const bool refuses = refuses_size(layer, now_);
    note(fmt::format("`{}` takes samples of {} and gets {}", layer.name, text_of(layer.input),
                     text_of(now_)),
         refuses);
    if (refuses) {
      return;
    }
    if (layer.kind == LayerKind::linear) {
      now_.back() = layer.output.back();
    } else if (layer.kind == LayerKind::flatten) {
      now_ = {elements_of(now_)};
    } else {
      is_lost_ |= !takes_any_size(layer.kind);
    }
  }

  void pass_marker(const Layer& layer) {
    if (layer.kind == LayerKind::residual_begin) {
      held_.push_back({now_, layer.input});
    } else if (layer.kind == LayerKind::residual_shortcut) {
      now_ = std::exchange(held_.back(), {now_, layer.input}).size;
    } else if (ends_residual(layer.kind) && !held_.empty()) {
      join(layer, held_.back());
      held_.pop_back();
    }
  }

  void join(const Layer& layer, const Held& held) {
    if (now_ == layer.input && held.size == held.modelled) {
      now_ = layer.output;
      return;
    }
    const bool adds = layer.kind == LayerKind::residual_add;
    const size_t end = layer.name.rfind('.');  // behind it stands what the mark is called
    const std::string of =
        end == std::string::npos ? "a Residual" : fmt::format("`{}`", layer.name.substr(0, end));
    note(fmt::format("the branches of {} have {} and {} per sample", of, text_of(held.size),
                     text_of(now_)),
         adds && cannot_broadcast(held.size, now_));
    is_lost_ |= !adds || held.size != now_;
  }

  const Network& network_;
  const std::vector<size_t>& left_out_;
  std::vector<Held> held_;
  Shape now_;             ///< of a sample, as it is
  Shape modelled_;        ///< the same with all layers
  bool is_lost_ = false;  ///< the size behind a layer that got a different one is not known
  std::optional<SizeConflict> conflict_;
};

}  // namespace

std::optional<SizeConflict> size_conflict_without(const Network& network,
                                                  const std::vector<size_t>& left_out,
                                                  const std::vector<size_t>& modules) {
  SizesWithoutLayers sizes(network, left_out);
  const auto pass_all = [&](size_t first, size_t end) {
    for (size_t i = first; i < end && !sizes.raises() && !sizes.is_lost(); ++i) {
      sizes.pass(i);
    }
  };
  if (modules.empty()) {
    pass_all(0, network.layers.size());
  }
  for (const size_t module : modules) {
    pass_all(network.modules[module].first_layer, network.modules[module].end_layer);
  }
  if (!sizes.raises() && !sizes.is_lost()) {
    sizes.end_in(modules.empty() ? network.loss : network.modules[modules.back()].loss);
  }
  return sizes.conflict();
}

}  // namespace lockstep
