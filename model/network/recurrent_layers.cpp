// Layers with steps in time: LSTM.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

constexpr int64_t gates_of_lstm = 4;
constexpr int64_t most_lstm_layers = 1000;

/// For each position and layer, 2 * 4 h (i + h) operations. Its backward needs the four gates, the
/// cell's state and the output of every position, and the input.
void price_lstm(const LayerContext& context, const LstmArguments& lstm, Layer& layer) {
  const int64_t positions = context.input[0];
  const int64_t hidden = lstm.hidden_size;
  const int64_t states = positions * hidden * lstm.num_layers;
  const Int128 inputs = Int128{lstm.input_size} + Int128{lstm.num_layers - 1} * hidden +
                        Int128{lstm.num_layers} * hidden;
  const Flops products(narrow_to_int64(Int128{2} * gates_of_lstm * hidden * positions * inputs));
  // Each step reads input and state, writes the gates, reads them and the cell, writes both states.
  const int64_t moved = elements_of(context.input) + states * (1 + 2 * gates_of_lstm + 4);
  layer.work = {Work{products, moved}, Work{products, 2 * moved},
                Work{products, elements_of(context.input) + states * (1 + gates_of_lstm)}};
  layer.saves.input = true;
  layer.saves.output = true;
  layer.saves.elements = states * (gates_of_lstm + 1) + states - positions * hidden;
}

void fill_lstm(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const LstmArguments lstm{.input_size = arguments.integer("input_size"),
                           .hidden_size = arguments.integer("hidden_size"),
                           .num_layers = arguments.integer("num_layers", 1),
                           .bias = arguments.boolean("bias", true)};
  arguments.boolean("batch_first", true);  // a sample has no batch dimension: nothing to choose
  arguments.only("dropout", 0.0);
  arguments.only("bidirectional", false);
  arguments.only("proj_size", int64_t{0});
  layer.kind = LayerKind::lstm;
  layer.arguments = lstm;
  if (!arguments.ok() || !has_dimensions(context, 2, "[positions, features]", arguments) ||
      !is_positive(lstm.hidden_size, "hidden_size", arguments) ||
      !is_positive(lstm.num_layers, "num_layers", arguments)) {
    return;
  }
  if (context.input[1] != lstm.input_size) {
    arguments.complain(fmt::format("input_size is {}, but the input has shape {}", lstm.input_size,
                                   text_of(context.input)),
                       fmt::format("set input_size to {}", context.input[1]));
    return;
  }
  if (lstm.num_layers > most_lstm_layers) {
    arguments.complain(fmt::format("num_layers is {}", lstm.num_layers),
                       fmt::format("write at most {}", most_lstm_layers));
    return;
  }
  layer.output = {context.input[0], lstm.hidden_size};
  int64_t width = lstm.input_size;
  for (int64_t level = 0; level < lstm.num_layers; ++level) {
    const int64_t rows = narrow_to_int64(Int128{gates_of_lstm} * lstm.hidden_size);
    layer.parameters.push_back({fmt::format("weight_ih_l{}", level), {rows, width}});
    layer.parameters.push_back({fmt::format("weight_hh_l{}", level), {rows, lstm.hidden_size}});
    if (lstm.bias) {
      layer.parameters.push_back({fmt::format("bias_ih_l{}", level), {rows}});
      layer.parameters.push_back({fmt::format("bias_hh_l{}", level), {rows}});
    }
    width = lstm.hidden_size;
  }
  if (has_possible_size(layer, arguments)) {
    price_lstm(context, lstm, layer);
  }
}

}  // namespace

std::vector<LayerKindEntry> recurrent_layer_kinds() {
  return {{"LSTM", {"input_size", "hidden_size", "num_layers", "bias"}, fill_lstm}};
}

}  // namespace lockstep
