#include "model/network/tensor_parallel/context_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/core/nearest_sizes.hpp"
#include "model/network/accounting.hpp"
#include "model/network/attention_part.hpp"
#include "model/network/tensor_parallel/cut_layer.hpp"
#include "model/network/tensor_parallel/layer_places.hpp"

namespace lockstep {

namespace {

bool is_token_by_token(const Layer& layer) {
  if (const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments)) {
    return !mixture->capacity_factor && mixture->aux_loss_coef == 0 && !mixture->is_divided();
  }
  return treats_positions_alike(layer.kind) || layer.kind == LayerKind::embedding ||
         layer.kind == LayerKind::bias || layer.kind == LayerKind::exchange;
}

bool normalises_heads(const Layer& layer) {
  const auto* attention = std::get_if<GroupedQueryArguments>(&layer.arguments);
  return attention != nullptr && attention->qk_norm_eps.has_value();
}

bool reads_tokens(const Layer& layer) {
  return layer.kind == LayerKind::embedding || layer.kind == LayerKind::exchange;
}

/// Walks through a network and appends what a rank has of each layer.
class PositionCutter {
 public:
  PositionCutter(const Network& whole, int32_t ranks, ContextExchange exchange)
      : whole_(whole), part_{ranks, exchange} {}

  CutNetwork cut();

 private:
  void refuse(const std::string& where, const std::string& why_not, const std::string& remedy,
              bool is_unmodelled = true) {
    if (result_.why_not.empty()) {
      result_.where = where;
      result_.why_not = why_not;
      result_.remedy = remedy;
      result_.is_unmodelled = is_unmodelled;
    }
  }
  void check_sample();
  void add_layer(const Layer& layer);
  void add_part(const Layer& layer) {
    result_.network.layers.push_back(of_part(layer, 0, part_.ranks));
  }
  void add_core(const Layer& core);
  void add_attention(const Layer& layer);
  void cut_loss();

  const Network& whole_;
  ContextPart part_;
  CutNetwork result_;
  LayerPlaces places_;
};

// Transformer Engine always computes such attention by flash or cuDNN's fused kernels: no matrix of
// scores. The core reads query, key and value and writes the sum; backward does so with gradients.
void PositionCutter::add_core(const Layer& core) {
  Layer part = of_part(core, 0, part_.ranks);
  const CoreWidths widths = core_widths(core);
  if (part_.exchange == ContextExchange::all_to_all &&
      (widths.heads % part_.ranks != 0 || widths.key_heads % part_.ranks != 0)) {
    refuse(
        core.name,
        fmt::format("AssertionError: The number of attention heads needs to be divisible by CP "
                    "size! {} heads and {} of keys and values on each rank, {} ranks",
                    widths.heads, widths.key_heads, part_.ranks),
        fmt::format("choose a context_parallel_size that divides {}: {}; or cp_comm_type: p2p or "
                    "all_gather",
                    std::gcd(widths.heads, widths.key_heads),
                    divisors_of(std::gcd(widths.heads, widths.key_heads), part_.ranks)),
        false);
    return;
  }
  if (part_.exchange == ContextExchange::ring && widths.window > 0 &&
      widths.window < whole_.input.front()) {
    refuse(core.name,
           "AssertionError: Context parallelism does not support sliding window attention with "
           "cp_comm_type='p2p'!",
           "write cp_comm_type: a2a or all_gather", false);
    return;
  }
  const int64_t positions = part.input.front();
  const int64_t moved = positions * (2 * widths.query() + 2 * widths.key());
  const Flops scores = part.work_of(Pass::forward).flops;
  part.work = {Work{scores, moved}, Work{scores * 2, 2 * moved}, Work{.runs = false}};
  part.saves.input = true;
  part.saves.output = true;
  // By heads, the sum of other positions than those that the output has.
  part.saves.elements =
      part_.exchange == ContextExchange::all_to_all ? positions * widths.query() : 0;
  part.saves.fixed = 4_B * (positions * widths.heads);
  part.attention_core =
      AttentionCore{part.work_of(Pass::forward), part.saves.elements, part.saves.fixed};
  part.context = part_;
  result_.network.layers.push_back(std::move(part));
}

void PositionCutter::add_attention(const Layer& layer) {
  CutAttention cut = layer.kind == LayerKind::grouped_query_attention
                         ? cut_grouped_attention(layer)
                         : cut_fused_attention(layer, 1);
  for (Layer* each : {&cut.projection, &cut.output}) {
    for (ParameterTensor& parameter : each->parameters) {
      if (parameter.cut && parameter.cut->parts == 1) {
        parameter.cut = std::nullopt;
      }
    }
  }
  add_part(cut.projection);
  if (layer.kind == LayerKind::grouped_query_attention) {
    result_.network.layers.back().context = part_;
  }
  add_core(cut.core);
  add_part(cut.output);
  if (cut.bias) {
    add_part(*cut.bias);
  }
}

void PositionCutter::add_layer(const Layer& layer) {
  const bool has_positions = layer.input.size() >= 2 || reads_tokens(layer);
  if (!has_positions || layer.input.front() % part_.ranks != 0 ||
      layer.output.front() % part_.ranks != 0) {
    refuse(layer.name,
           fmt::format("{} ranks cannot divide the positions of its input {}", part_.ranks,
                       text_of(layer.input)),
           "context parallelism divides the first dimension of each sample: choose a length that "
           "the ranks divide",
           false);
  } else if (normalises_heads(layer)) {
    refuse(layer.name, "norms of query and key under context parallelism are not modelled",
           "set context_parallel_size: 1");
  } else if (layer.kind == LayerKind::grouped_query_attention || is_fused_attention(layer.kind)) {
    add_attention(layer);
  } else if (layer.kind == LayerKind::attention_core) {
    add_core(layer);
  } else if (layer.kind == LayerKind::positional_embedding) {
    add_part(layer);
    result_.network.layers.back().context = part_;
  } else if (is_token_by_token(layer)) {
    add_part(layer);
  } else {
    refuse(layer.name,
           fmt::format("{} under context parallelism is not modelled: it does not treat each "
                       "position by itself",
                       name_of(layer.kind)),
           "set context_parallel_size: 1");
  }
}

/// Means of equally many numbers on each rank have the mean of all of them as their mean.
void PositionCutter::cut_loss() {
  Layer& loss = result_.network.loss;
  const auto* arguments = std::get_if<LossArguments>(&loss.arguments);
  if (arguments == nullptr || !arguments->mean || arguments->batch_mean || loss.input.size() < 2) {
    refuse("loss",
           "under context parallelism only the mean over all positions is modelled, not a sum or a "
           "mean over samples",
           "set reduction: mean");
    return;
  }
  loss.input.front() /= part_.ranks;
  for (Work& work : loss.work) {
    work.flops = work.flops / part_.ranks;
    work.elements /= part_.ranks;
  }
  loss.saves.elements /= part_.ranks;
  loss.saves.fixed = loss.saves.fixed / part_.ranks;
}

/// nemo/lightning/pytorch/strategies/utils.py and Megatron-LM's get_batch_on_this_cp_rank.
void PositionCutter::check_sample() {
  if (!whole_.modules.empty()) {
    refuse("", "a network of several modules is not cut here", "give it one model");
  } else if (whole_.input.empty() || whole_.input.front() % (2 * part_.ranks) != 0) {
    refuse("input",
           fmt::format("AssertionError: Sequence length must be divisible by 2 * context parallel "
                       "size if context parallel is used. ({} positions, {} ranks)",
                       whole_.input.empty() ? 1 : whole_.input.front(), part_.ranks),
           fmt::format("choose a sequence length that {} divides, such as {}", 2 * part_.ranks,
                       nearest_multiples(whole_.input.empty() ? 1 : whole_.input.front(),
                                         int64_t{2} * part_.ranks)),
           false);
  }
}

CutNetwork PositionCutter::cut() {
  Network& cut = result_.network;
  cut.name = whole_.name;
  cut.input = whole_.input;
  cut.input_dtype = whole_.input_dtype;
  cut.loss = whole_.loss;
  check_sample();
  for (const Layer& layer : whole_.layers) {
    if (!result_.why_not.empty()) {
      return std::move(result_);
    }
    places_.first.push_back(cut.layers.size());
    add_layer(layer);
    places_.last.push_back(cut.layers.size() - 1);
  }
  cut_loss();
  if (result_.why_not.empty()) {
    cut.input.front() /= part_.ranks;
    places_.holder = places_.first;
    map_ranges(whole_, places_, cut);
    account(cut);
  }
  return std::move(result_);
}

}  // namespace

CutNetwork cut_by_positions(const Network& network, int32_t ranks, ContextExchange exchange) {
  return PositionCutter(network, ranks, exchange).cut();
}

}  // namespace lockstep
