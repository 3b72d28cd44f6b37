#include "tests/libtorch/layer_case.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "backend/libtorch/tensor_buffers.hpp"
#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"
#include "model/core/random.hpp"

namespace lockstep::libtorch_test {

Slice Memory::add(Values values) {
  buffers_.push_back(std::move(values));
  return {BufferId{static_cast<uint32_t>(buffers_.size())}, buffers_.back().dtype(), 0,
          buffers_.back().size()};
}

Slice Memory::add_without_values(DType dtype, int64_t elements) {
  buffers_.emplace_back();
  return {BufferId{static_cast<uint32_t>(buffers_.size())}, dtype, 0, elements};
}

Values Memory::load(const Slice& from) {
  const Values& held = buffers_.at(from.buffer.value - 1);
  return held.empty() ? Values() : held.slice(from.begin, from.elements);
}

void Memory::store(const Slice& to, const Values& values) {
  Values& held = buffers_.at(to.buffer.value - 1);
  ensure(values.dtype() == to.dtype && values.size() == to.elements, "a result fits its slice");
  if (!held.empty()) {
    held.assign(to.begin, values);
  }
}

namespace {

/// Operands that are copied out of their buffers and back.
class CopiedOperands final : public backend::TensorOperands {
 public:
  explicit CopiedOperands(Operands& operands) : operands_(operands) {}
  at::Tensor load(const Slice& from) override {
    Values values = operands_.load(from);
    return values.empty() ? at::Tensor() : backend::tensor_of(std::move(values));
  }
  void store(const Slice& to, const at::Tensor& values) override {
    operands_.store(to, backend::values_of(values, to.dtype));
  }
  void add(const Slice& to, const at::Tensor& values) override {
    if (const at::Tensor held = load(to); held.defined() && values.numel() > 0) {
      backend::add_into(held.narrow(0, 0, values.numel()), values);
      store(to, held);
    }
  }

 private:
  Operands& operands_;
};

}  // namespace

Execute reference() { return execute_kernel; }

Execute libtorch(uint64_t dropout_seed) {
  const auto kernels = std::make_shared<backend::TensorKernels>(dropout_seed);
  return [kernels](const Op& op, Operands& operands, const Network* network) {
    CopiedOperands copied(operands);
    kernels->execute(op, copied, network);
  };
}

void run_kernel(const Execute& execute, Memory& memory, Kernel kernel,
                const std::vector<Slice>& reads, const std::vector<Slice>& writes,
                const std::vector<double>& scalars, const Network* network, int32_t layer,
                DType computes_in) {
  const OpLists lists{{}, reads, writes, {}, scalars};
  Op op;
  op.kind = OpKind::compute;
  op.kernel = kernel;
  op.tag = layer;
  op.dtype = computes_in;
  op.lists = &lists;
  execute(op, memory, network);
}

LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

std::vector<Network> one_layer_of_each_kind() {
  const NamedArgument two{"", int64_t{2}};
  const NamedArgument four{"", int64_t{4}};
  std::vector<Network> all;
  const auto add = [&all](Shape input, LayerDescription description) {
    all.push_back(network_of(std::move(input), {std::move(description)}));
  };
  add({4}, layer("Linear", {four, two}));
  add({4}, layer("Bias", {four}));
  add({4}, layer("ReLU"));
  add({4}, layer("GELU"));
  add({4}, layer("Embedding", {four, two}));
  add({2, 4}, layer("PositionalEmbedding", {two, four}));
  add({4}, layer("BatchNorm1d", {four}));
  add({2, 2, 2}, layer("BatchNorm2d", {two}));
  add({4}, layer("LayerNorm", {four}));
  add({2, 4, 4}, layer("Conv2d", {two, two, two}));
  add({2, 4, 4}, layer("MaxPool2d", {two}));
  add({2, 4, 4}, layer("AvgPool2d", {two}));
  add({2, 4, 4}, layer("AdaptiveAvgPool2d", {two}));
  add({2, 4}, layer("Flatten"));
  add({4}, layer("Dropout", {{"", 0.5}}));
  add({3, 4}, layer("MultiheadAttention", {four, two}));
  add({3, 4}, layer("CausalSelfAttention", {four, two}));
  add({4}, layer("LeakyReLU"));
  add({4}, layer("SiLU"));
  add({4}, layer("Sigmoid"));
  add({4}, layer("Tanh"));
  add({4}, layer("Softmax"));
  add({2, 4}, layer("RMSNorm", {four}));
  add({4, 2}, layer("GroupNorm", {two, four}));
  add({2, 4}, layer("Conv1d", {two, two, two}));
  add({2, 2, 2}, layer("ConvTranspose2d", {two, two, two}));
  add({3, 4}, layer("GroupedQueryAttention", {four, two, {"", int64_t{1}}}));
  add({3, 4}, layer("SwiGLU", {four, two}));
  add({3, 4}, layer("MixtureOfExperts", {four, two, two, {"", int64_t{1}}}));
  add({3, 4}, layer("LSTM", {four, two}));
  add({2, 2, 2}, layer("Upsample", {{"scale_factor", int64_t{2}}}));
  add({2, 2, 2}, layer("PatchSequence", {two}));
  add({2, 4}, layer("FirstPosition"));
  add({4}, layer("ReLU6"));
  add({4}, layer("Hardswish"));
  add({4}, layer("Hardsigmoid"));
  add({4}, layer("StochasticDepth", {{"p", 0.5}}));
  add({2, 4}, layer("LayerScale", {{"shape", std::vector<int64_t>{1, 4}}}));
  add({2, 4}, layer("Permute", {{"dims", std::vector<int64_t>{0, 2, 1}}}));
  add({3, 4, 2}, layer("PatchMerging"));
  add({3, 4, 4}, layer("WindowAttention", {four, two, {"", int64_t{1}}, two}));
  add({4}, layer("Scale", {{"factor", 0.5}}));
  add({3, 4}, layer("Positions", {{"first", int64_t{1}}, {"count", int64_t{2}}}));
  add({3, 4}, layer("RelativePositionBias", {two}));
  return all;
}

Network network_of(Shape input, std::vector<LayerDescription> layers, LayerDescription loss) {
  BuildResult result =
      build_network({.input = input, .layers = std::move(layers), .loss = std::move(loss)});
  REQUIRE(result.ok());
  return std::move(result.network);
}

Values integers(DType dtype, int64_t elements, uint64_t key) {
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, static_cast<double>(random_below(key, static_cast<uint64_t>(i), 5)) - 2);
  }
  return values;
}

Values reals(DType dtype, int64_t elements, uint64_t key) {
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 2 * random_unit(key, static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

LayerValues values_for(const Layer& layer, DType dtype, int64_t samples, Draw draw) {
  LayerValues values;
  values.samples = samples;
  const int64_t inputs = samples * elements_of(layer.input);
  values.input = draw(dtype, inputs, 1);
  if (layer.kind == LayerKind::embedding) {
    values.input = Values(DType::int64, inputs);
    const int64_t rows = std::get<EmbeddingArguments>(layer.arguments).num_embeddings;
    for (int64_t i = 0; i < inputs; ++i) {
      values.input.set_integer(i, (3 * i + 1) % rows);
    }
  }
  values.output_gradient = draw(dtype, samples * elements_of(layer.output), 2);
  uint64_t key = 3;
  for (const ParameterTensor& parameter : layer.parameters) {
    values.parameters.push_back(draw(dtype, parameter.elements(), key++));
    values.gradients.push_back(draw(dtype, parameter.elements(), key++));
  }
  for (const BufferTensor& buffer : layer.buffers) {
    values.buffers.push_back(integers(buffer.dtype, buffer.elements(), key++));
  }
  if (layer.aside) {
    values.branch = draw(dtype, samples * elements_of(layer.aside->shape), key);
  } else if (layer.kind == LayerKind::residual_multiply) {
    values.branch = draw(dtype, samples * elements_of(layer.output), key);
  } else if (layer.kind == LayerKind::residual_add || layer.kind == LayerKind::residual_begin) {
    values.branch = draw(dtype, inputs, key);
  }
  return values;
}

Values rounded(const Values& values, DType dtype) {
  Values result(dtype, values.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    result.set(i, values.number(i));
  }
  return result;
}

LayerValues rounded(const LayerValues& values, DType dtype) {
  LayerValues result = values;
  if (is_floating(values.input.dtype())) {
    result.input = rounded(values.input, dtype);
  }
  result.output_gradient = rounded(values.output_gradient, dtype);
  for (size_t i = 0; i < values.parameters.size(); ++i) {
    result.parameters[i] = rounded(values.parameters[i], dtype);
    result.gradients[i] = rounded(values.gradients[i], dtype);
  }
  if (values.branch) {
    result.branch = rounded(*values.branch, dtype);
  }
  return result;
}

LayerResult run_layer(const Execute& execute, const Network& network, size_t layer,
                      const LayerValues& values, DType computes_in) {
  Memory memory;
  const DType dtype = values.output_gradient.dtype();
  const LayerKind kind = network.layers[layer].kind;
  const auto number = static_cast<int32_t>(layer);
  const auto samples = static_cast<double>(values.samples);
  std::vector<Slice> forward_reads{memory.add(values.input)};
  std::vector<Slice> forward_writes{memory.add(Values(dtype, values.output_gradient.size()))};
  for (const Values& parameter : values.parameters) {
    forward_reads.push_back(memory.add(parameter));
  }
  std::vector<Slice> backward_reads{memory.add(values.output_gradient)};
  backward_reads.insert(backward_reads.end(), forward_reads.begin(), forward_reads.end());
  const bool is_beside =
      network.layers[layer].aside.has_value() || kind == LayerKind::residual_multiply;
  if (is_beside) {
    forward_reads.push_back(memory.add(*values.branch));
    backward_reads.push_back(forward_reads.back());
  } else if (values.branch) {
    auto& reads = kind == LayerKind::residual_add ? forward_reads : backward_reads;
    reads.push_back(memory.add(*values.branch));
  }
  for (const Values& buffer : values.buffers) {
    forward_writes.push_back(memory.add(buffer));
  }
  const bool indices = !is_floating(values.input.dtype());
  std::vector<Slice> backward_writes{
      indices ? Slice{forward_reads[0].buffer, dtype, 0, 0}
              : memory.add(Values(values.input.dtype(), values.input.size()))};
  for (const Values& gradient : values.gradients) {
    backward_writes.push_back(memory.add(gradient));
  }
  if (is_beside) {  // a sum that is there already; a factor's gradient is written over it
    backward_writes.push_back(memory.add(*values.branch));
  }
  run_kernel(execute, memory, Kernel::layer_forward, forward_reads, forward_writes, {samples, 1},
             &network, number, computes_in);
  // The second number is a mixture's factor of its own loss; of a batch norm it would be a part.
  const bool is_mixture =
      network.layers[static_cast<size_t>(number)].kind == LayerKind::mixture_of_experts;
  run_kernel(execute, memory, Kernel::layer_backward, backward_reads, backward_writes,
             is_mixture ? std::vector<double>{samples, 1} : std::vector<double>{samples}, &network,
             number, computes_in);
  LayerResult result;
  result.output = memory.load(forward_writes[0]);
  result.input_gradient = indices ? Values() : memory.load(backward_writes[0]);
  for (size_t i = 0; i < values.gradients.size(); ++i) {
    result.gradients.push_back(memory.load(backward_writes[1 + i]));
  }
  if (is_beside) {
    result.gradients.push_back(memory.load(backward_writes.back()));
  }
  for (size_t i = 0; i < values.buffers.size(); ++i) {
    result.buffers.push_back(memory.load(forward_writes[1 + i]));
  }
  return result;
}

double distance(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a.number(i) - b.number(i));
    most = std::isnan(apart) ? INFINITY : std::max(most, apart);
  }
  return most;
}

double greatest(const Values& values) {
  double most = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(values.number(i)));
  }
  return most;
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::fp64: return 0x1p-53;
    case DType::fp32: return 0x1p-24;
    case DType::fp16: return 0x1p-11;
    default: return 0x1p-8;  // bf16
  }
}

double roundings(double count, DType dtype) {
  const double error = count * unit_roundoff(dtype);
  return error / (1 - error);
}

}  // namespace lockstep::libtorch_test
