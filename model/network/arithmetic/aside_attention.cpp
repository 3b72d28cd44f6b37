#include "model/network/arithmetic/aside_attention.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "model/network/arithmetic/biased_attention.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/tensor.hpp"

namespace lockstep {

namespace {

constexpr size_t query_product = 0;
constexpr size_t key_product = 1;
constexpr size_t value_product = 2;
constexpr size_t output_product = 3;

BiasedAttentionShape scores_of(const AsideAttentionShape& shape) {
  const AsideAttentionArguments& arguments = shape.arguments;
  const int64_t width = arguments.width();
  const HeadRows keys{shape.keys, width, 0};
  return {.groups = shape.samples,
          .heads = arguments.num_heads,
          .width = arguments.head_dim,
          .scale = arguments.scaled ? 1 / std::sqrt(static_cast<double>(arguments.head_dim)) : 1,
          .query = {shape.queries, width, 0},
          .key = keys,
          .value = keys,
          .sum = {shape.queries, width, 0}};
}

size_t place_in_bias(const AsideAttentionShape& shape, int64_t group, int64_t head,
                     int64_t position, int64_t other) {
  const int64_t row = (group * shape.arguments.num_heads + head) * shape.queries + position;
  return static_cast<size_t>(row * shape.keys + other);
}

/// The number that is added to a score. `bias` is empty where there is none.
template <class T>
auto added_to_scores(const AsideAttentionShape& shape, const std::vector<T>& bias) {
  return [&shape, &bias](int64_t group, int64_t head, int64_t position, int64_t other) {
    if (shape.arguments.causal && other > position) {
      return -std::numeric_limits<T>::infinity();
    }
    return bias.empty() ? T{0} : bias[place_in_bias(shape, group, head, position, other)];
  };
}

template <class T>
std::vector<T> numbers_if(const Values* values) {
  return values == nullptr ? std::vector<T>{} : numbers_of<T>(*values);
}

struct AsideStates {
  Values query{};
  Values key{};
  Values value{};
  Values sum{};
};

Values product_of(const Values& input, const AsideWeights& weights, size_t which, int64_t rows,
                  int64_t in, int64_t out, DType dtype) {
  Values output(dtype, rows * out);
  linear_forward(input, *weights.weight[which], weights.bias[which], rows, in, out, output);
  return output;
}

AsideStates attend_aside(const Values& input, const AsideOperands& aside,
                         const AsideWeights& weights, const AsideAttentionShape& shape,
                         DType dtype) {
  const AsideAttentionArguments& arguments = shape.arguments;
  const int64_t width = arguments.width();
  AsideStates states;
  states.query = product_of(input, weights, query_product, shape.query_rows(), arguments.embed_dim,
                            width, dtype);
  states.key = product_of(aside.source, weights, key_product, shape.key_rows(),
                          arguments.source_dim, width, dtype);
  states.value = product_of(aside.source, weights, value_product, shape.key_rows(),
                            arguments.source_dim, width, dtype);
  states.sum = Values(dtype, shape.query_rows() * width);
  with_accumulator({&states.sum, aside.bias}, [&]<class T>(T) {
    const std::vector<T> bias = numbers_if<T>(aside.bias);
    std::vector<T> sum(static_cast<size_t>(states.sum.size()));
    biased_attention_forward(scores_of(shape), numbers_of<T>(states.query),
                             numbers_of<T>(states.key), numbers_of<T>(states.value),
                             added_to_scores(shape, bias), sum);
    store_numbers(sum, states.sum);
  });
  return states;
}

/// The gradients of query, key and value; adds that of the bias.
AsideStates state_gradients(const AsideStates& states, const Values& sum_gradient,
                            const Values* bias, const AsideAttentionShape& shape,
                            Values* bias_gradient) {
  AsideStates gradients{Values(states.query.dtype(), states.query.size()),
                        Values(states.key.dtype(), states.key.size()),
                        Values(states.value.dtype(), states.value.size())};
  with_accumulator({&states.query, bias}, [&]<class T>(T) {
    const std::vector<T> added = numbers_if<T>(bias);
    std::vector<T> query(static_cast<size_t>(states.query.size()));
    std::vector<T> key(static_cast<size_t>(states.key.size()));
    std::vector<T> value(static_cast<size_t>(states.value.size()));
    std::vector<T> of_bias(added.size());
    biased_attention_backward(
        scores_of(shape), numbers_of<T>(states.query), numbers_of<T>(states.key),
        numbers_of<T>(states.value), added_to_scores(shape, added), numbers_of<T>(sum_gradient),
        BiasedAttentionGradients<T>{query, key, value},
        [&](int64_t group, int64_t head, int64_t position, int64_t other, T slope) {
          if (!of_bias.empty()) {
            of_bias[place_in_bias(shape, group, head, position, other)] += slope;
          }
        });
    store_numbers(query, gradients.query);
    store_numbers(key, gradients.key);
    store_numbers(value, gradients.value);
    if (bias_gradient != nullptr) {
      accumulate_numbers(of_bias, *bias_gradient);
    }
  });
  return gradients;
}

/// Gradients of one product: of its weights, and that of its input, which is returned.
Values back_through(const Values& input, const Values& output_gradient, const AsideWeights& weights,
                    size_t which, int64_t rows, int64_t in, int64_t out,
                    const AsideGradients& gradients) {
  if (gradients.weights.weight[which] != nullptr) {
    linear_weight_gradient(input, output_gradient, rows, in, out, *gradients.weights.weight[which]);
  }
  if (gradients.weights.bias[which] != nullptr) {
    bias_weight_gradient(output_gradient, rows, out, *gradients.weights.bias[which]);
  }
  Values input_gradient(output_gradient.dtype(), rows * in);
  linear_input_gradient(output_gradient, *weights.weight[which], rows, in, out, input_gradient);
  return input_gradient;
}

void add_values(const Values& addition, Values& sum) {
  Values rounded(sum.dtype(), addition.size());
  cast(addition, rounded);
  accumulate(Reduction::sum, sum, rounded);
}

}  // namespace

void aside_attention_forward(const Values& input, const AsideOperands& aside,
                             const AsideWeights& weights, const AsideAttentionShape& shape,
                             Values& output) {
  const AsideStates states = attend_aside(input, aside, weights, shape, output.dtype());
  output = product_of(states.sum, weights, output_product, shape.query_rows(),
                      shape.arguments.width(), shape.arguments.embed_dim, output.dtype());
}

void aside_attention_backward(const Values& input, const AsideOperands& aside,
                              const AsideWeights& weights, const Values& output_gradient,
                              const AsideAttentionShape& shape, const AsideGradients& gradients) {
  const AsideAttentionArguments& arguments = shape.arguments;
  const int64_t width = arguments.width();
  const AsideStates states = attend_aside(input, aside, weights, shape, output_gradient.dtype());
  const Values sum = back_through(states.sum, output_gradient, weights, output_product,
                                  shape.query_rows(), width, arguments.embed_dim, gradients);
  const AsideStates of_states = state_gradients(states, sum, aside.bias, shape, gradients.bias);
  const Values from_query = back_through(input, of_states.query, weights, query_product,
                                         shape.query_rows(), arguments.embed_dim, width, gradients);
  Values from_source = back_through(aside.source, of_states.key, weights, key_product,
                                    shape.key_rows(), arguments.source_dim, width, gradients);
  add_values(back_through(aside.source, of_states.value, weights, value_product, shape.key_rows(),
                          arguments.source_dim, width, gradients),
             from_source);
  if (gradients.input != nullptr) {
    *gradients.input = Values(gradients.input->dtype(), gradients.input->size());
    add_values(from_query, *gradients.input);
    if (&aside.source == &input) {
      add_values(from_source, *gradients.input);
    }
  }
  if (gradients.source != nullptr) {
    add_values(from_source, *gradients.source);
  }
}

}  // namespace lockstep
