// Kernels of layers over positions: attention, gated feed-forward, LSTM.
#include <algorithm>

#include "model/network/attention_part.hpp"
#include "model/network/window_shape.hpp"
#include "sim/cost/kernel_sum.hpp"

namespace lockstep::sim {

namespace {

bool has_fused_scores(SoftwareProfile software) {
  return software != SoftwareProfile::pytorch && software != SoftwareProfile::compiled;
}

/// Scores of `heads` heads, of all samples, of so many positions with so many others.
struct ScoreShape {
  int64_t heads = 1;
  int64_t positions = 1;
  int64_t others = 1;
  int64_t width = 1;      ///< of a head
  double seen_part = 1;   ///< of all pairs of positions, those which one flash kernel computes
  bool is_flash = false;  ///< else the whole matrix goes through memory
};

/// Scores, softmax, dropout and weighted sum.
void add_scores(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass,
                const ScoreShape& shape) {
  const auto [heads, positions, others, width, seen_part, is_flash] = shape;
  const KernelConstants& constants = machine.constants;
  if (is_flash) {
    // Dao et al. 2022: the backward computes the scores again, 2.5 times the products.
    const double work = 4.0 * static_cast<double>(heads) * static_cast<double>(positions) *
                        static_cast<double>(others * width) * seen_part *
                        (pass.is_backward ? 2.5 : 1);
    sum.add(work / (product_rate(machine, pass.dtype, machine.tf32_products) *
                    constants[KernelTerm::flash]));
    return;
  }
  const double part = constants[KernelTerm::batched];
  const MatrixProduct scores{positions, others, width, heads};
  const MatrixProduct sums{positions, width, others, heads};
  for (int time = 0; time < (pass.is_backward ? 2 : 1); ++time) {
    for (const MatrixProduct& product : {scores, sums}) {
      sum.add(seconds_of_product(machine, product, pass.dtype, machine.tf32_products, part));
    }
  }
  const bool is_fused = has_fused_scores(machine.software);
  const double passes = constants[is_fused ? KernelTerm::scores_fused : KernelTerm::scores_unfused];
  const double matrix = static_cast<double>(heads) * static_cast<double>(positions * others) *
                        static_cast<double>(size_of(pass.dtype));
  const int kernels = is_fused ? 2 : 4;
  for (int kernel = 0; kernel < kernels; ++kernel) {
    sum.stream(passes * matrix / kernels);
  }
}

/// Of all pairs of positions, the part that a causal mask and a window leave.
double causal_part(int64_t positions, int64_t window) {
  const auto all = static_cast<double>(positions);
  if (window <= 0 || window >= positions) {
    return 0.5;
  }
  const double part = static_cast<double>(window) / all;
  return part - part * part / 2;
}

void add_grouped_scores(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const auto& attention = std::get<GroupedQueryArguments>(layer.arguments);
  const int64_t all = positions_of_sample(layer);
  add_scores(
      sum, machine, pass,
      {.heads = pass.samples * attention.num_heads,
       .positions = layer.input[0],
       .others = all,
       .width = attention.head_dim,
       .seen_part = causal_part(all, attention.sliding_window),
       .is_flash = layer.context || (layer.attention_core && layer.attention_core->elements == 0)});
}

}  // namespace

void add_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  if (std::holds_alternative<GroupedQueryArguments>(layer.arguments)) {
    add_grouped_scores(sum, machine, pass);
    return;
  }
  const auto& attention = std::get<AttentionArguments>(layer.arguments);
  const int64_t width = attention.embed_dim;
  const bool has_no_products = layer.kind == LayerKind::attention_core;
  if (!pass.is_core_alone && !has_no_products) {
    const int64_t rows = rows_of(pass);
    add_product(sum, machine, pass, {rows, 3 * width, width}, 1);
    add_product(sum, machine, pass, {rows, width, width}, 1);
    // Biases, and the order of heads: query, key, value and their sum are moved once.
    sum.element_wise(8.0 * static_cast<double>(rows * width * size_of(pass.dtype)));
  }
  const bool is_causal = layer.kind == LayerKind::causal_self_attention || attention.causal;
  const int64_t kept_by_flash = has_no_products ? 0 : 4 * elements_of(layer.input);
  add_scores(sum, machine, pass,
             {.heads = pass.samples * attention.num_heads,
              .positions = layer.input[0],
              .others = positions_of_sample(layer),
              .width = width / attention.num_heads,
              .seen_part = is_causal ? 0.5 : 1,
              .is_flash = layer.context || layer.saves.elements == kept_by_flash});
}

void add_grouped_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const auto& attention = std::get<GroupedQueryArguments>(layer.arguments);
  if (!pass.is_core_alone) {
    const int64_t rows = rows_of(pass);
    const int64_t query = attention.query_width();
    const int64_t key = attention.key_width();
    // Query, key and value by one product, as trained implementations do it.
    add_product(sum, machine, pass, {rows, query + 2 * key, attention.embed_dim}, 1);
    add_product(sum, machine, pass, {rows, attention.embed_dim, query}, 1);
    // The order of heads of query, key, value and their sum, and the turn of query and key: each is
    // read and written.
    const int64_t moved = 2 * (2 * query + 2 * key) + 2 * (query + key);
    sum.element_wise(static_cast<double>(rows * moved * size_of(pass.dtype)));
    if (attention.qk_norm_eps) {  // what is read is read twice, as of other norms
      sum.element_wise((pass.is_backward ? 4.5 : 3.0) *
                       static_cast<double>(rows * (query + key) * size_of(pass.dtype)));
    }
  }
  add_grouped_scores(sum, machine, pass);
}

/// Query, key and value of some positions, by one product; query and key are turned.
void add_attention_projections(KernelSum& sum, const KernelMachine& machine,
                               const LayerPass& pass) {
  const auto& attention = std::get<GroupedQueryArguments>(pass.layer->arguments);
  const int64_t rows = rows_of(pass);
  const int64_t query = attention.query_width();
  const int64_t key = attention.key_width();
  add_product(sum, machine, pass, {rows, query + 2 * key, attention.embed_dim}, 1);
  sum.element_wise(static_cast<double>(rows * 2 * (query + key) * size_of(pass.dtype)));
}

/// Query, key and value by one product each; their order of heads, and that of the sum. A bias is
/// added to the scores, and its gradient is that of the scores.
void add_aside_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const Layer& layer = *pass.layer;
  const auto& attention = std::get<AsideAttentionArguments>(layer.arguments);
  const bool is_cross = layer.kind == LayerKind::cross_attention;
  const int64_t keys = is_cross ? layer.aside->shape[0] : layer.input[0];
  const int64_t rows = pass.samples * layer.input[0];
  const int64_t key_rows = pass.samples * keys;
  const int64_t width = attention.width();
  const auto bytes = static_cast<double>(size_of(pass.dtype));
  add_product(sum, machine, pass, {rows, width, attention.embed_dim}, 1);
  add_product(sum, machine, pass, {key_rows, width, attention.source_dim}, 1);
  add_product(sum, machine, pass, {key_rows, width, attention.source_dim}, 1);
  add_product(sum, machine, pass, {rows, attention.embed_dim, width}, 1);
  sum.element_wise(4.0 * static_cast<double>((rows + key_rows) * width) * bytes);
  if (!is_cross) {
    sum.stream(3.0 * static_cast<double>(rows * keys * attention.num_heads) * bytes);
  }
  add_scores(sum, machine, pass,
             {.heads = pass.samples * attention.num_heads,
              .positions = layer.input[0],
              .others = keys,
              .width = attention.head_dim,
              .is_flash = is_cross && layer.saves.fixed > Bytes{}});
}

/// Windows are cut out and put back (and the image turned, where they are shifted), the query is
/// scaled, and the order of heads of query, key, value and their sum changes; bias and mask are
/// added to the scores.
void add_window_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& attention = std::get<WindowAttentionArguments>(pass.layer->arguments);
  const WindowShape shape = window_shape(attention, pass.layer->input);
  const int64_t rows = pass.samples * shape.positions();
  const auto bytes = static_cast<double>(size_of(pass.dtype));
  const double state = static_cast<double>(rows * shape.channels) * bytes;
  const double matrix =
      static_cast<double>(rows) * static_cast<double>(shape.area() * shape.heads) * bytes;
  add_product(sum, machine, pass, {rows, 3 * shape.channels, shape.channels}, 1);
  add_product(sum, machine, pass, {rows, shape.channels, shape.channels}, 1);
  sum.element_wise((shape.is_shifted() ? 18 : 14) * state);
  sum.stream(2 * matrix);
  if (shape.is_shifted() && !pass.is_backward) {
    sum.stream(2 * matrix);
  }
  add_scores(sum, machine, pass,
             {.heads = pass.samples * shape.windows() * shape.heads,
              .positions = shape.area(),
              .others = shape.area(),
              .width = shape.head_width()});
}

void add_swiglu(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& gated = std::get<SwigluArguments>(pass.layer->arguments);
  const int64_t rows = rows_of(pass);
  const double hidden = static_cast<double>(rows * gated.hidden_dim * size_of(pass.dtype));
  add_product(sum, machine, pass, {rows, gated.hidden_dim, gated.embed_dim}, 1);
  add_product(sum, machine, pass, {rows, gated.hidden_dim, gated.embed_dim}, 1);
  // SiLU reads and writes, the product of both factors reads two and writes one; the backward of
  // the product reads three and writes two, that of SiLU reads two and writes one.
  sum.element_wise((pass.is_backward ? 8 : 5) * hidden);
  add_product(sum, machine, pass, {rows, gated.embed_dim, gated.hidden_dim}, 1);
}

/// Appleyard et al. 2016 (arXiv 1604.01946), which cuDNN does: the products of the input are one
/// for all positions, those of the state follow each other, and a cell's gates are one kernel. The
/// gradients of the weights are again one product for all positions.
void add_lstm(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass) {
  const auto& lstm = std::get<LstmArguments>(pass.layer->arguments);
  constexpr int64_t gates = 4;
  const int64_t positions = pass.layer->input[0];
  const int64_t hidden = lstm.hidden_size;
  const int64_t rows = pass.samples * positions;
  const auto seconds = [&](const MatrixProduct& product) {
    return seconds_of_product(machine, product, pass.dtype, machine.tf32_products, 1);
  };
  const MatrixProduct state = pass.is_backward
                                  ? MatrixProduct{pass.samples, hidden, gates * hidden}
                                  : MatrixProduct{pass.samples, gates * hidden, hidden};
  // Gates and both states are read and written.
  const double cell = static_cast<double>(pass.samples * hidden * (2 * gates + 4)) *
                      static_cast<double>(size_of(pass.dtype)) / memory_rate(machine);
  for (int64_t level = 0; level < lstm.num_layers; ++level) {
    add_product(sum, machine, pass, {rows, gates * hidden, level == 0 ? lstm.input_size : hidden},
                1);
    for (int64_t position = 0; position < positions; ++position) {
      sum.add_of_library(seconds(state));
      sum.add_of_library(cell);
    }
    if (pass.is_backward) {
      sum.add(seconds({gates * hidden, hidden, rows}));
    }
  }
}

}  // namespace lockstep::sim
