#include "backend/libtorch/layer_kernels.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstring>

#include "backend/libtorch/layer_output.hpp"
#include "backend/libtorch/mixture_output.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"
#include "model/core/random.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/attention_part.hpp"
#include "model/network/batch_norm_part.hpp"
#include "model/network/mixture.hpp"

namespace lockstep::backend {

namespace {

const Layer& layer_of(const Op& op, const Network& network) {
  return network.layers.at(static_cast<size_t>(op.tag));
}

/// This layer or one before it is trained, so that a backward will come here.
bool gets_gradient(const Network& network, size_t layer) {
  return std::any_of(network.layers.begin(),
                     network.layers.begin() + static_cast<std::ptrdiff_t>(layer) + 1,
                     [](const Layer& each) { return each.has_trainable_parameters(); });
}

std::vector<int64_t> batch_sizes(const OpLists& lists, const Shape& sample) {
  std::vector<int64_t> sizes{static_cast<int64_t>(lists.scalars[0])};
  sizes.insert(sizes.end(), sample.begin(), sample.end());
  return sizes;
}

/// Parameters that the kernels of a layer read: its own, and before them a tied weight.
size_t parameter_count(const Layer& layer) {
  return layer.parameters.size() + (layer.tied_layer ? 1 : 0);
}

/// A parameter's sizes; a tied weight has those that its Linear would have.
std::vector<int64_t> parameter_sizes(const Layer& layer, size_t index) {
  if (!layer.tied_layer) {
    return layer.parameters[index].shape;
  }
  if (index > 0) {
    return layer.parameters[index - 1].shape;
  }
  const auto& linear = std::get<LinearArguments>(layer.arguments);
  return {linear.out_features, linear.in_features};
}

/// The same for equal inputs, so that a recomputed forward drops what the first one dropped.
uint64_t dropout_key(const LayerState& state, const Op& op, const at::Tensor& input) {
  uint64_t key = random_key(state.dropout_seed, static_cast<uint64_t>(op.tag));
  const at::Tensor here = input.cpu();
  const auto* bytes = static_cast<const std::byte*>(here.const_data_ptr());
  for (size_t begin = 0; begin < here.nbytes(); begin += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + begin, std::min(sizeof word, here.nbytes() - begin));
    key = random_key(key, word);
  }
  return key;
}

at::Tensor leaf(const at::Tensor& read, const std::vector<int64_t>& sizes, bool with_graph) {
  at::Tensor tensor = read.detach().view(sizes);
  return with_graph && tensor.is_floating_point() ? tensor.detach().requires_grad_() : tensor;
}

std::vector<LeafSource> sources_of(std::span<const Slice> slices,
                                   std::span<const at::Tensor> memories,
                                   const TensorOperands& operands) {
  std::vector<LeafSource> sources;
  for (size_t i = 0; i < slices.size(); ++i) {
    sources.push_back({memories[i], slices[i], operands.identity_of(slices[i])});
  }
  return sources;
}

/// `scalar`: which one says it.
int64_t first_row_of(const Layer& layer, const OpLists& lists, size_t scalar) {
  const auto* embedding = std::get_if<EmbeddingArguments>(&layer.arguments);
  const bool is_part = embedding != nullptr && embedding->is_part;
  return is_part ? static_cast<int64_t>(lists.scalars[scalar]) : 0;
}

/// Runs the layer's forward. `reads` are input and parameters; with the graph where one is asked
/// for.
LayerGraph run_forward(const Op& op, const Layer& layer, std::span<const LeafSource> reads,
                       LayerTensors tensors, DType output_dtype, bool with_graph) {
  const at::AutoGradMode grad_mode(with_graph);
  const bool mixed = is_floating(op.dtype) && parameter_count(layer) > 0 &&
                     size_of(op.dtype) < reads[1].memory.element_size();
  if (mixed) {
    tensors.products_in = scalar_type_of(op.dtype);
  }
  LayerGraph graph;
  tensors.input = leaf(reads[0].memory, batch_sizes(op.list(), layer.input), with_graph);
  graph.leaves.emplace_back(tensors.input, reads[0], false);
  for (size_t i = 0; i < parameter_count(layer); ++i) {
    const LeafSource& read = reads[1 + i];
    const bool can_come_back = with_graph && read.identity != 0;
    tensors.parameters.push_back(leaf(can_come_back ? with_own_storage(read.memory) : read.memory,
                                      parameter_sizes(layer, i), with_graph));
    graph.leaves.emplace_back(tensors.parameters.back(), read, can_come_back);
  }
  if (layer.aside) {
    const LeafSource& read = reads[1 + parameter_count(layer)];
    tensors.aside = leaf(read.memory, batch_sizes(op.list(), layer.aside->shape), with_graph);
    graph.leaves.emplace_back(tensors.aside, read, false);
  }
  graph.output = layer_output(layer, tensors, scalar_type_of(output_dtype));
  if (with_graph) {
    graph.auxiliary = auxiliary_loss(layer, tensors);
  }
  return graph;
}

/// The one read, or the sum of the first and the last, each in the type of the result.
void pass_on(std::span<const at::Tensor> reads, bool with_last, const Slice& to,
             TensorOperands& operands) {
  if (with_last) {
    const at::ScalarType type = scalar_type_of(to.dtype);
    operands.give(to, reads.front().to(type).add(reads.back().to(type)));
  } else {
    operands.store(to, reads.front());
  }
}

/// Of a Multiply, what was remembered, and what multiplies it.
at::Tensor whole_of(const Op& op, const Layer& layer, const at::Tensor& numbers) {
  return numbers.view(batch_sizes(op.list(), layer.output));
}
at::Tensor factor_of(const Op& op, const Layer& layer, const at::Tensor& numbers) {
  return numbers.view(batch_sizes(op.list(), layer.input));
}

/// Reads the product's gradient and both factors, and writes the gradients of both.
void product_backward(const Op& op, const Layer& layer, std::span<const at::Tensor> reads,
                      TensorOperands& operands) {
  const at::AutoGradMode grad_mode(true);
  const at::ScalarType type = scalar_type_of(op.list().reads[0].dtype);
  const at::Tensor factor = factor_of(op, layer, reads[1]).detach().requires_grad_();
  const at::Tensor whole = whole_of(op, layer, reads[2]).detach().requires_grad_();
  const at::Tensor product = whole.to(type) * factor.to(type);
  const std::vector<at::Tensor> inputs{factor, whole};
  const auto gradients = torch::autograd::grad({product}, inputs, {whole_of(op, layer, reads[0])});
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (op.list().writes[i].elements > 0) {
      operands.give(op.list().writes[i], gradients[i]);
    }
  }
}

void pass_on_forward(const Op& op, const Layer& layer, std::span<const at::Tensor> reads,
                     TensorOperands& operands) {
  const Slice& to = op.list().writes[0];
  if (layer.kind == LayerKind::residual_concatenate) {
    const auto samples = static_cast<int64_t>(op.list().scalars[0]);
    const at::ScalarType type = scalar_type_of(to.dtype);
    operands.give(to, at::cat({reads.back().to(type).view({samples, -1}),
                               reads.front().to(type).view({samples, -1})},
                              1));
    return;
  }
  if (layer.kind == LayerKind::residual_multiply) {
    const at::ScalarType type = scalar_type_of(to.dtype);
    operands.give(to, whole_of(op, layer, reads.back()).to(type) *
                          factor_of(op, layer, reads.front()).to(type));
    return;
  }
  pass_on(reads, layer.kind == LayerKind::residual_add, to, operands);
}

/// A joined gradient has two parts for each sample: what was remembered, then the branch.
void pass_on_backward(const Op& op, const Layer& layer, std::span<const at::Tensor> reads,
                      TensorOperands& operands) {
  const Slice& to = op.list().writes[0];
  const auto samples = static_cast<int64_t>(op.list().scalars[0]);
  const int64_t own = elements_of(layer.input);
  if (layer.kind == LayerKind::residual_concatenate) {
    const at::Tensor joined = reads.front().view({samples, -1});
    operands.give(to, joined.narrow(1, joined.size(1) - own, own).contiguous());
  } else if (layer.kind == LayerKind::residual_begin && reads.back().numel() != samples * own) {
    const at::Tensor remembered = reads.back().view({samples, -1}).narrow(1, 0, own);
    pass_on(std::vector<at::Tensor>{reads.front().flatten(), remembered.reshape(-1)}, true, to,
            operands);
  } else {
    pass_on(reads, layer.kind == LayerKind::residual_begin, to, operands);
  }
}

/// Input and parameters whose gradient is asked for, and where it goes.
struct WantedGradients {
  std::vector<at::Tensor> leaves{};
  std::vector<size_t> writes{};
};

WantedGradients wanted_gradients(const OpLists& lists, const LayerGraph& graph) {
  WantedGradients wanted;
  for (size_t i = 0; i < graph.leaves.size() && i < lists.writes.size(); ++i) {
    if (lists.writes[i].elements > 0 && graph.leaves[i].tensor().requires_grad()) {
      wanted.leaves.push_back(graph.leaves[i].tensor());
      wanted.writes.push_back(i);
    }
  }
  return wanted;
}

/// The graph of the forward that made this backward necessary, or of a second one. `reads`: as of
/// the forward.
LayerGraph graph_for_backward(const Op& op, const Layer& layer, std::span<const LeafSource> reads,
                              LayerState& state) {
  const OpLists& lists = op.list();
  const DType output_dtype = lists.reads[0].dtype;
  auto kept = state.graphs.take(op.tag, lists.reads[1]);
  const size_t leaves = 1 + parameter_count(layer) + (layer.aside ? 1 : 0);
  if (kept && kept->fits(reads.first(leaves)) &&
      kept->output.scalar_type() == scalar_type_of(output_dtype)) {
    for (size_t i = 0; i < kept->leaves.size(); ++i) {
      kept->leaves[i].point_at(reads[i]);
    }
    return std::move(*kept);
  }
  ++state.forwards_again;
  LayerTensors tensors;
  tensors.first_row = first_row_of(layer, lists, 1);
  tensors.dropout_key = draws(layer) ? dropout_key(state, op, reads[0].memory) : 0;
  return run_forward(op, layer, reads, std::move(tensors), output_dtype, true);
}

}  // namespace

void execute_layer_forward(const Op& op, TensorOperands& operands, const Network& network,
                           LayerState& state) {
  const OpLists& lists = op.list();
  const Layer& layer = layer_of(op, network);
  const std::vector<at::Tensor> reads = load_all(lists.reads, operands);
  if (reads.empty() || lists.writes.empty()) {
    return;
  }
  if (passes_on(layer.kind)) {
    pass_on_forward(op, layer, reads, operands);
    return;
  }
  if (are_experts_divided(layer) || has_divided_positions(layer) || is_batch_norm_part(op, layer)) {
    execute_by_reference(op, operands, network);
    return;
  }
  LayerTensors tensors;
  tensors.training = lists.scalars[1] != 0;
  tensors.first_row = first_row_of(layer, lists, 3);
  tensors.dropout_key = tensors.training && draws(layer) ? dropout_key(state, op, reads[0]) : 0;
  const auto buffers = lists.writes.subspan(1);
  tensors.buffers = load_all(buffers, operands);
  const bool runs_again = lists.scalars.size() > 2 && lists.scalars[2] != 0;
  const bool keeps =
      tensors.training && !runs_again && gets_gradient(network, static_cast<size_t>(op.tag));
  LayerGraph graph = run_forward(op, layer, sources_of(lists.reads, reads, operands), tensors,
                                 lists.writes[0].dtype, keeps);
  operands.give(lists.writes[0], graph.output);
  for (size_t i = 0; tensors.training && i < tensors.buffers.size(); ++i) {
    operands.store(buffers[i], tensors.buffers[i]);
  }
  if (keeps) {
    state.graphs.keep(op.tag, lists.reads[0], std::move(graph));
  }
}

void execute_layer_backward(const Op& op, TensorOperands& operands, const Network& network,
                            LayerState& state) {
  const OpLists& lists = op.list();
  const Layer& layer = layer_of(op, network);
  const std::vector<at::Tensor> reads = load_all(lists.reads, operands);
  if (reads.empty() || lists.writes.empty()) {
    return;
  }
  if (layer.kind == LayerKind::residual_multiply) {
    product_backward(op, layer, reads, operands);
    return;
  }
  if (passes_on(layer.kind)) {
    if (lists.writes[0].elements > 0) {
      pass_on_backward(op, layer, reads, operands);
    }
    return;
  }
  if (are_experts_divided(layer) || has_divided_positions(layer) || is_batch_norm_part(op, layer)) {
    execute_by_reference(op, operands, network);
    return;
  }
  const LayerGraph graph = graph_for_backward(
      op, layer, sources_of(lists.reads.subspan(1), std::span(reads).subspan(1), operands), state);
  const WantedGradients wanted = wanted_gradients(lists, graph);
  if (wanted.leaves.empty()) {
    return;
  }
  std::vector<at::Tensor> outputs{graph.output};
  std::vector<at::Tensor> factors{reads[0].view(batch_sizes(lists, layer.output))};
  if (graph.auxiliary.defined()) {
    outputs.push_back(graph.auxiliary);
    factors.push_back(at::full_like(graph.auxiliary, lists.scalars[1]));
  }
  const auto gradients =
      torch::autograd::grad(outputs, wanted.leaves, factors, std::nullopt, false, true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Slice& to = lists.writes[wanted.writes[i]];
    if (!gradients[i].defined() && wanted.writes[i] > 0) {
      continue;  // no path leads to it: it adds nothing
    }
    if (!gradients[i].defined()) {
      operands.give(to, at::zeros_like(wanted.leaves[i]));
    } else if (wanted.writes[i] > 0) {
      operands.add(to, gradients[i]);
    } else {
      operands.give(to, gradients[i]);
    }
  }
}

}  // namespace lockstep::backend
