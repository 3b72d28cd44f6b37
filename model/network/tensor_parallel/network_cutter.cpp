// What ranks that compute layers together have of each, and what they exchange for it.
#include "model/network/tensor_parallel/network_cutter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/nearest_sizes.hpp"

namespace lockstep {

namespace {
using Kind = ParallelStyle::Kind;
}  // namespace

/// What the ranks would have to divide, and cannot.
std::string NetworkCutter::remedy_of_size(int64_t size) const {
  return fmt::format("choose a {} that divides {}: {}", size_argument(), size,
                     divisors_of(size, ranks_));
}

std::string NetworkCutter::remedy_of_positions() const {
  if (shape_.size() < 2) {
    return "write Replicate(): a sample has no positions here";
  }
  return fmt::format("choose a sequence length that {} ({}) divides, such as {}", size_argument(),
                     ranks_, nearest_multiples(shape_.front(), ranks_));
}

void NetworkCutter::exchange(const ExchangeArguments& how, const std::string& module) {
  if (ranks_ == 1) {
    return;
  }
  Layer layer{.kind = LayerKind::exchange};
  layer.name = fmt::format("{} exchange {}", module, ++exchanges_);
  layer.arguments = how;
  layer.input = shape_;
  layer.output = shape_;
  int64_t& size = layer.output.at(how.dimension);
  if (how.forward == TensorExchange::all_gather) {
    size *= ranks_;
  } else if (how.forward == TensorExchange::reduce_scatter ||
             how.forward == TensorExchange::split) {
    size /= ranks_;
  }
  layer.work = {Work{.runs = false}, Work{.runs = false}, Work{.runs = false}};
  layer.saves.is_view = how.forward == TensorExchange::none;
  append(std::move(layer));
}

/// `gives_terms`: layers behind it give each rank a term of the gradient, else all have it whole.
/// `times`: of how many layers.
void NetworkCutter::bring(TensorLayout from, TensorLayout to, bool gives_terms, int32_t times,
                          const std::string& module) {
  const auto dimension_of = [this](TensorLayout layout) {
    return layout == TensorLayout::sequence ? size_t{0} : shape_.size() - 1;
  };
  using enum TensorExchange;
  ExchangeArguments how{.ranks = ranks_, .backward_times = times};
  if (from == to) {
    if (to != TensorLayout::replicated || !gives_terms) {
      return;
    }
    how.backward = all_reduce;
  } else if (to == TensorLayout::replicated) {
    how.dimension = dimension_of(from);
    how.forward = all_gather;
    how.backward = gives_terms ? reduce_scatter : split;
  } else if (from == TensorLayout::replicated) {
    how.dimension = dimension_of(to);
    how.forward = split;
    how.backward = all_gather;
    if (shape_.at(how.dimension) % ranks_ != 0) {
      refuse(module,
             fmt::format("{} {} cannot be divided among {} ranks", shape_.at(how.dimension),
                         to == TensorLayout::sequence ? "positions" : "features", ranks_),
             to == TensorLayout::sequence ? remedy_of_positions()
                                          : remedy_of_size(shape_.at(how.dimension)));
      return;
    }
  } else {
    refuse(module,
           fmt::format("bringing {} to {} (an all_to_all) is not modelled", name_of(from),
                       name_of(to)),
           "go through Replicate()");
    result_.is_unmodelled = true;
    return;
  }
  exchange(how, module);
  layout_ = to;
}

/// Whether what arrives is held as the style says it is: torch takes its word for it, and fails
/// where shapes do not fit, or computes something else.
bool NetworkCutter::arrives(const std::string& module, TensorLayout wanted) {
  if (layout_ == wanted) {
    return true;
  }
  if (wanted == TensorLayout::features && layout_ == TensorLayout::replicated) {
    refuse(module,
           "RowwiseParallel takes its input as Shard(-1), but every rank has all features here",
           "make the Linear before it ColwiseParallel, or write "
           "input_layouts=Replicate()");
  } else {
    refuse(module,
           fmt::format("its input arrives as {}, not as {}", name_of(layout_), name_of(wanted)),
           fmt::format("write input_layouts={}, or change what the module before it gives",
                       name_of(layout_)));
  }
  return false;
}

/// "got mixed torch.Tensor and DTensor" (RuntimeError).
void NetworkCutter::refuse_mixture(const std::string& module) {
  refuse(module,
         "a DTensor meets a plain torch.Tensor here, which torch does not compute with: the module "
         "before it has use_local_output=False",
         "add it to the plan, or write use_local_output=True for the module before it");
}

void NetworkCutter::take(CutLayer cut, const std::string& module) {
  if (!cut.why_not.empty()) {
    refuse(module, cut.why_not, cut.divided > 0 ? remedy_of_size(cut.divided) : cut.remedy);
    return;
  }
  append(std::move(cut.layer));
  if (cut.bias && by_ == CutBy::megatron) {
    pending_bias_ = std::move(cut.bias);
  } else if (cut.bias) {
    append(std::move(*cut.bias));
  }
}

/// What a Linear or Embedding reads is brought to where its style wants it. False: it cannot be.
bool NetworkCutter::bring_input(const Layer& layer, const ParallelStyle& style) {
  const bool by_rows = style.kind == Kind::row;
  const bool is_embedding = layer.kind == LayerKind::embedding;
  // Indices are whole on every rank, and have no gradient.
  const TensorLayout input = is_embedding ? TensorLayout::replicated : style.input;
  if (!arrives(layer.name, input)) {
    return false;
  }
  const bool is_last = layer.name == whole_.layers.back().name && !by_rows && !is_embedding &&
                       style.output == TensorLayout::features;
  last_keeps_parts_ = is_last && (!style.local_output || by_ == CutBy::megatron);
  if (!style.local_output && !is_last) {
    refuse(layer.name, "use_local_output=False of a Linear or Embedding is not modelled",
           "leave it out, except of a last Linear with output_layouts=Shard(-1)");
    result_.is_unmodelled = true;
    return false;
  }
  if (!is_embedding) {
    const bool is_there = is_distributed_ && input == TensorLayout::replicated;
    if (by_rows && is_there) {
      refuse(layer.name, "RowwiseParallel right behind PrepareModuleInput is not modelled",
             "leave PrepareModuleInput out: RowwiseParallel divides its input itself");
      result_.is_unmodelled = true;
      return false;
    }
    if (by_rows) {
      bring(input, TensorLayout::features, false, 1, layer.name);
    } else if (!is_there) {
      bring(input, TensorLayout::replicated, true, 1, layer.name);
    }
  }
  return !is_refused();
}

void NetworkCutter::add_cut(const Layer& layer, const ParallelStyle& style) {
  if (!bring_input(layer, style)) {
    return;
  }
  const bool by_rows = style.kind == Kind::row;
  take(cut_by(layer, style.kind, ranks_), layer.name);
  if (is_refused()) {
    // DTensor has parts of unequal sizes, which fit where they are gathered at once.
    const bool has_columns = layer.kind == LayerKind::embedding || layer.kind == LayerKind::linear;
    result_.is_unmodelled = has_columns && !by_rows && style.output == TensorLayout::replicated;
    return;
  }
  is_distributed_ = false;
  ExchangeArguments sum{.forward = TensorExchange::all_reduce, .ranks = ranks_};
  if (!by_rows) {
    layout_ = TensorLayout::features;
    bring(TensorLayout::features, style.output, false, 1, layer.name);
  } else if (style.output == TensorLayout::sequence) {
    if (shape_.size() < 2 || shape_.front() % ranks_ != 0) {
      refuse(layer.name,
             fmt::format("its output {} has no positions that {} ranks divide", text_of(shape_),
                         ranks_),
             remedy_of_positions());
      return;
    }
    sum.forward = TensorExchange::reduce_scatter;
    sum.backward = TensorExchange::all_gather;
    exchange(sum, layer.name);
    layout_ = TensorLayout::sequence;
    add_bias_behind_sum(layer.name);
  } else if (style.output == TensorLayout::features) {
    if (shape_.back() % ranks_ != 0) {
      refuse(layer.name,
             fmt::format("its {} features cannot be divided among {} ranks", shape_.back(), ranks_),
             "write output_layouts=Replicate()");
      return;
    }
    sum.forward = TensorExchange::reduce_scatter;
    sum.backward = TensorExchange::all_gather;
    sum.dimension = shape_.size() - 1;
    exchange(sum, layer.name);
    layout_ = TensorLayout::features;
  } else {
    exchange(sum, layer.name);
    layout_ = TensorLayout::replicated;
    add_bias_behind_sum(layer.name);
  }
}

/// Whether projections that are cut read their input as one tensor.
bool NetworkCutter::can_read_once(const Layer& layer,
                                  const std::vector<const ParallelStyle*>& styles) {
  if (std::ranges::any_of(styles, [](const auto* style) { return !style->local_output; })) {
    refuse(layer.name, "use_local_output=False of a Linear is not modelled", "leave it out");
    result_.is_unmodelled = true;
    return false;
  }
  const TensorLayout input = styles.front()->input;
  if (!arrives(layer.name, input)) {
    return false;
  }
  if (input != TensorLayout::replicated) {
    refuse(layer.name + "." + projections_of(layer.kind).front(),
           "that each projection gathers the same input by itself is not modelled",
           fmt::format("gather it once: {}: PrepareModuleInput(input_layouts={}, "
                       "desired_input_layouts=Replicate())",
                       layer.name, name_of(input)));
    result_.is_unmodelled = true;
    return false;
  }
  return true;
}

/// Attention and gated feed-forwards hold several Linears: all are in the plan, or none.
void NetworkCutter::add_inside(const Layer& layer) {
  const std::vector<std::string> names = projections_of(layer.kind);
  std::vector<const ParallelStyle*> styles;
  for (const std::string& name : names) {
    styles.push_back(style_of(layer.name + "." + name));
  }
  if (std::ranges::all_of(styles, [](const auto* style) { return style == nullptr; })) {
    add_plain(layer);
    return;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    const Kind wanted = is_last ? Kind::row : Kind::column;
    const ParallelStyle* const style = styles[i];
    if (style == nullptr || style->kind != wanted ||
        (is_last ? style->input : style->output) != TensorLayout::features ||
        (!is_last && style->input != styles.front()->input)) {
      refuse(layer.name + "." + names[i],
             fmt::format("{} computes with its projections together: all but {} are cut by "
                         "columns alike, and {} by rows",
                         layer.name, names.back(), names.back()),
             fmt::format("write {} for it", is_last ? "RowwiseParallel" : "ColwiseParallel"));
      return;
    }
  }
  const ParallelStyle& last = *styles.back();
  if (!can_read_once(layer, styles)) {
    return;
  }
  if (!is_distributed_) {
    const auto readers = static_cast<int32_t>(names.size()) - 1;
    bring(TensorLayout::replicated, TensorLayout::replicated, true, readers, layer.name);
  }
  take(cut_inside(layer, ranks_), layer.name);
  if (is_refused()) {
    return;
  }
  is_distributed_ = false;
  const bool scatters = last.output == TensorLayout::sequence;
  if (last.output == TensorLayout::features || (scatters && shape_.front() % ranks_ != 0)) {
    refuse(layer.name + "." + names.back(),
           fmt::format("its output {} cannot leave as {}", text_of(shape_), name_of(last.output)),
           scatters ? "write Replicate(), or " + remedy_of_positions()
                    : "write Replicate(), or Shard(1)");
    return;
  }
  exchange({.forward = scatters ? TensorExchange::reduce_scatter : TensorExchange::all_reduce,
            .backward = scatters ? TensorExchange::all_gather : TensorExchange::none,
            .ranks = ranks_},
           layer.name);
  layout_ = last.output;
}

void NetworkCutter::add_sequence(const Layer& layer, const ParallelStyle& style) {
  const bool is_norm = layer.kind == LayerKind::layer_norm || layer.kind == LayerKind::rms_norm;
  if (!is_norm && layer.kind != LayerKind::dropout) {
    refuse(layer.name, "SequenceParallel is for LayerNorm, RMSNorm and Dropout",
           "leave it out of the plan");
    return;
  }
  if (layout_ != TensorLayout::sequence) {
    refuse(layer.name,
           fmt::format("SequenceParallel takes its input as Shard(1), but it arrives as {}",
                       name_of(layout_)),
           "let the module before it give output_layouts=Shard(1)");
    return;
  }
  Layer part = of_part(layer, 0, ranks_);
  for (ParameterTensor& parameter : part.parameters) {
    parameter.gradient_is_partial = ranks_ > 1;
    if (!parameter.trainable) {
      // style.py, _replicate_module_fn: a Parameter that is recreated requires a gradient.
      parameter.trainable = true;
      result_.notes.push_back(fmt::format(
          "{}.{} is trained although it was frozen: SequenceParallel recreates its parameters; "
          "freeze it after parallelize_module",
          layer.name, parameter.name));
    }
  }
  append(std::move(part));
  is_distributed_ = !style.local_output;
}

void NetworkCutter::pass_residual(const Layer& layer) {
  if (layer.kind == LayerKind::residual_begin) {
    residuals_.push_back({layout_, std::nullopt, is_distributed_});
  } else if (layer.kind == LayerKind::residual_shortcut) {
    std::swap(is_distributed_, residuals_.back().is_distributed);
    residuals_.back().put_aside = std::exchange(layout_, residuals_.back().remembered);
  } else if (layer.kind == LayerKind::aside_end) {
    residuals_.pop_back();
  } else if (joins_branches(layer.kind)) {
    const OpenResidual closed = residuals_.back();
    residuals_.pop_back();
    const TensorLayout other = closed.put_aside.value_or(closed.remembered);
    if (closed.is_distributed != is_distributed_) {
      refuse_mixture(layer.name);
    } else if (other != layout_) {
      refuse(layer.name,
             fmt::format("a residual joins {} and {}: the shapes do not fit", name_of(layout_),
                         name_of(other)),
             "let both branches end in the same layout, by output_layouts of their last Linear");
    }
  }
}

void NetworkCutter::add_plain(const Layer& layer) {
  const bool is_there = layout_ == TensorLayout::replicated ||
                        (layout_ == TensorLayout::features ? treats_elements_alike(layer.kind)
                                                           : treats_positions_alike(layer.kind));
  if (!is_there) {
    refuse(layer.name,
           fmt::format("its input arrives as {}, a part on each rank, and it is not in the plan",
                       name_of(layout_)),
           layout_ == TensorLayout::features
               ? "let the Linear before it give output_layouts=Replicate(), or add it to the plan"
               : "bring its input to Replicate() by PrepareModuleInput");
    return;
  }
  if (is_distributed_ && !layer.parameters.empty()) {
    refuse_mixture(layer.name);
    return;
  }
  pass_residual(layer);
  if (layout_ == TensorLayout::replicated) {
    append(layer);
    scatter_positions(layer);
  } else if (layout_ == TensorLayout::sequence) {
    if (layer.has_trainable_parameters()) {
      result_.notes.push_back(
          fmt::format("{} gets a part of the positions on each rank and is not in the plan: nobody "
                      "adds up the gradients of its weights (SequenceParallel does)",
                      layer.name));
    }
    append(of_part(layer, 0, ranks_));
  } else {
    append(of_part(layer, layer.output.size() - 1, ranks_));
  }
}

}  // namespace lockstep
