#include "model/network/arithmetic/initial_values.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"
#include "model/core/random.hpp"

namespace lockstep {

namespace {

Values constant(DType dtype, int64_t elements, double value) {
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, value);
  }
  return values;
}

Values given(DType dtype, int64_t elements, const std::vector<double>& numbers) {
  ensure(numbers.size() == 1 || std::ssize(numbers) == elements,
         "initial values are one for all elements, or one for each");
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, numbers.size() == 1 ? numbers.front() : numbers[static_cast<size_t>(i)]);
  }
  return values;
}

int64_t fan_in_of(const Layer& layer, size_t tensor) {
  if (layer.kind == LayerKind::embedding || layer.kind == LayerKind::positional_embedding) {
    return 1;
  }
  if (const auto* lstm = std::get_if<LstmArguments>(&layer.arguments)) {
    return lstm->hidden_size;  // of all its tensors, as torch's reset_parameters
  }
  if (layer.kind == LayerKind::mixture_of_experts) {
    return layer.parameters[tensor].shape.back();  // of each expert as of a Linear
  }
  // A bias follows the weight it belongs to; a bias alone, or of a tied weight, has none.
  const bool is_bias = layer.parameters[tensor].shape.size() == 1;
  const Shape& shape = layer.parameters[is_bias && tensor > 0 ? tensor - 1 : tensor].shape;
  return std::max<int64_t>(1, elements_of(Shape(shape.begin() + 1, shape.end())));
}

}  // namespace

Values integer_initial_values(DType dtype, int64_t elements, uint64_t key) {
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    const uint64_t draw = random_below(key, static_cast<uint64_t>(i), 5);
    values.set(i, static_cast<double>(draw) - 2);
  }
  return values;
}

Values uniform_initial_values(DType dtype, int64_t elements, int64_t fan_in, uint64_t key) {
  ensure(fan_in > 0, "a fan-in is positive");
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, (2 * random_unit(key, static_cast<uint64_t>(i)) - 1) * bound);
  }
  return values;
}

Values initial_parameter(const Layer& layer, size_t tensor, DType dtype, Initialisation how,
                         uint64_t key) {
  const ParameterTensor& parameter = layer.parameters.at(tensor);
  const int64_t elements = parameter.elements();
  if (parameter.initial) {
    return given(dtype, elements, *parameter.initial);
  }
  if (layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::layer_norm ||
      layer.kind == LayerKind::rms_norm || layer.kind == LayerKind::group_norm) {
    return constant(dtype, elements, parameter.name == "weight" ? 1 : 0);
  }
  if (parameter.name == "q_norm.weight" || parameter.name == "k_norm.weight") {
    return constant(dtype, elements, 1);
  }
  if (how == Initialisation::small_integers) {
    return integer_initial_values(dtype, elements, key);
  }
  return uniform_initial_values(dtype, elements, fan_in_of(layer, tensor), key);
}

Values initial_buffer(const BufferTensor& buffer, DType dtype) {
  if (buffer.initial) {
    return given(dtype, buffer.elements(), *buffer.initial);
  }
  return constant(dtype, buffer.elements(), buffer.name == "running_var" ? 1 : 0);
}

}  // namespace lockstep
