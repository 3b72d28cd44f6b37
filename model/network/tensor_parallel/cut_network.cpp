#include "model/network/tensor_parallel/cut_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/spelling.hpp"
#include "model/network/accounting.hpp"
#include "model/network/tensor_parallel/network_cutter.hpp"

namespace lockstep {

namespace {

bool may_have_style(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::embedding ||
         kind == LayerKind::layer_norm || kind == LayerKind::rms_norm || kind == LayerKind::dropout;
}

/// The name that was meant, or the first of those that a plan may have.
std::string remedy_of_name(const Network& whole, const std::string& asked) {
  std::vector<std::string> names;
  for (const Layer& layer : whole.layers) {
    if (has_projections(layer.kind)) {
      for (const std::string& projection : projections_of(layer.kind)) {
        names.push_back(layer.name + "." + projection);
      }
    } else if (may_have_style(layer.kind)) {
      names.push_back(layer.name);
    }
  }
  const std::string near = did_you_mean(asked, {names.begin(), names.end()});
  if (!near.empty() || names.empty()) {
    return near.empty() ? "leave it out: no layer of this network can be cut" : near;
  }
  constexpr size_t shown = 8;
  const bool is_long = names.size() > shown;
  names.resize(std::min(shown, names.size()));
  return fmt::format("name a layer, or a module in the names of layers: {}{}",
                     fmt::join(names, ", "), is_long ? ", .." : "");
}

}  // namespace

const ParallelStyle* NetworkCutter::style_of(const std::string& module) {
  const ParallelStyle* found = nullptr;
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (!fits_pattern(plan_[i].first, module)) {
      continue;
    }
    if (found != nullptr) {
      refuse(plan_[i].first,
             fmt::format("{} has another name in the plan that fits, too: torch would cut it twice",
                         module),
             "give each module one style");
    }
    is_used_[i] = true;
    found = &plan_[i].second;
  }
  return found;
}

void NetworkCutter::append(Layer layer) {
  shape_ = layer.output;
  result_.network.layers.push_back(std::move(layer));
}

/// PrepareModuleInput of a module that begins with this layer.
void NetworkCutter::enter_modules(size_t index) {
  const std::string& name = whole_.layers[index].name;
  for (size_t end = name.find('.'); !is_refused(); end = name.find('.', end + 1)) {
    const std::string module = name.substr(0, end);
    const bool begins = end == std::string::npos || index == 0 ||
                        !(whole_.layers[index - 1].name + ".").starts_with(module + ".");
    const ParallelStyle* style = begins ? style_of(module) : nullptr;
    if (style != nullptr && style->kind == ParallelStyle::Kind::input &&
        arrives(module, style->input)) {
      // As a plain tensor its gradient counts as whole, and layers add up their terms themselves.
      const bool gives_terms = style->output == TensorLayout::replicated && !style->local_output;
      bring(style->input, style->output, gives_terms, 1, module);
      is_distributed_ = !style->local_output;
    } else if (style != nullptr && style->kind != ParallelStyle::Kind::input &&
               end != std::string::npos) {
      refuse(module,
             "only Linear and Embedding can be cut by columns or rows, and norms by positions",
             "name the layers in the module");
    }
    if (end == std::string::npos) {
      return;
    }
  }
}

void NetworkCutter::add_layer(size_t index) {
  const Layer& layer = whole_.layers[index];
  places_.first.push_back(result_.network.layers.size());
  enter_modules(index);
  const ParallelStyle* const style = style_of(layer.name);
  places_.holder.push_back(result_.network.layers.size());
  if (is_refused()) {
    return;
  }
  const size_t before = result_.network.layers.size();
  if (is_fused_attention(layer.kind) && by_ == CutBy::megatron) {
    add_fused_attention(layer);
  } else if (has_projections(layer.kind)) {
    add_inside(layer);
  } else if (layer.kind == LayerKind::mixture_of_experts && style == nullptr) {
    add_experts(layer);
  } else if (style == nullptr || style->kind == ParallelStyle::Kind::input) {
    add_plain(layer);
  } else if (style->kind == ParallelStyle::Kind::sequence) {
    add_sequence(layer, *style);
  } else if (style->kind == ParallelStyle::Kind::experts) {
    refuse(layer.name, "ExpertParallel is for the experts of a mixture",
           "name them: the layer's name and `.experts`");
  } else {
    add_cut(layer, *style);
  }
  // Exchanges that a layer needs stand before it.
  for (size_t i = before; i < result_.network.layers.size(); ++i) {
    if (result_.network.layers[i].name == layer.name) {
      places_.holder.back() = i;
    }
  }
  places_.last.push_back(result_.network.layers.size() - 1);
}

/// parallelize_module gives each module of the plan parameters of its own: what was one weight are
/// then two.
void NetworkCutter::check_ties() {
  for (size_t index = 0; index < whole_.layers.size(); ++index) {
    const Layer& layer = whole_.layers[index];
    if (!layer.tied_layer) {
      continue;
    }
    const Layer& own = result_.network.layers[places_.holder[index]];
    const Layer& owner = result_.network.layers[places_.holder[*layer.tied_layer]];
    const std::optional<TensorCut>& cut = owner.parameters.front().cut;
    if (by_ == CutBy::megatron && cut && cut->dimension == 0 &&
        own.output.back() * ranks_ == layer.output.back()) {
      continue;  // both by the vocabulary: one weight, of which each rank has the same rows
    }
    if (own.output != layer.output || owner.parameters.front().cut) {
      refuse(
          layer.name,
          fmt::format("it shares its weight with {}, and parallelize_module would make two of it",
                      whole_.layers[*layer.tied_layer].name),
          "leave both out of the plan, or give the layer a weight of its own");
      result_.is_unmodelled = true;
    }
  }
}

void NetworkCutter::check_plan() {
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (!is_used_[i]) {
      refuse(plan_[i].first, fmt::format("no module of the network is called `{}`", plan_[i].first),
             remedy_of_name(whole_, plan_[i].first));
    }
  }
  if (layout_ == TensorLayout::features && last_keeps_parts_) {
    end_in_parts();
  } else if (layout_ != TensorLayout::replicated) {
    refuse(whole_.layers.back().name,
           fmt::format("the network ends in {}, a part on each rank, and the loss wants all of it",
                       name_of(layout_)),
           "let the last Linear give output_layouts=Replicate(); or leave the scores in parts for "
           "loss_parallel(): output_layouts=Shard(-1), use_local_output=False");
  }
}

CutNetwork NetworkCutter::cut() {
  Network& cut = result_.network;
  cut.name = whole_.name;
  cut.input = whole_.input;
  cut.input_dtype = whole_.input_dtype;
  cut.loss = whole_.loss;
  shape_ = whole_.input;
  if (!whole_.modules.empty()) {
    refuse("", "a network of several modules is not cut here", "give it one model");
    result_.is_unmodelled = true;
    return std::move(result_);
  }
  for (size_t index = 0; index < whole_.layers.size() && !is_refused(); ++index) {
    add_layer(index);
  }
  if (!is_refused()) {
    check_plan();
    check_ties();
  }
  if (!is_refused()) {
    map_ranges(whole_, places_, result_.network);
    account(cut);
  }
  return std::move(result_);
}

CutNetwork cut_network(const Network& whole, const ParallelPlan& plan, int32_t ranks) {
  return NetworkCutter(whole, plan, ranks).cut();
}

}  // namespace lockstep
