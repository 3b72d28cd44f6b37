#include "model/network/arithmetic/grouped_attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/network/arithmetic/attention_block.hpp"
#include "model/network/arithmetic/group_norm.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

namespace {

enum Projection : size_t { query_projection, key_projection, value_projection, output_projection };

/// Of one layer: rotated query and key, and value, each [rows, heads, head width].
struct HeadStates {
  Values query;
  Values key;
  Values value;
};

/// Where the vectors of one position begin, in one query head and the key head that serves it.
class GroupedHead {
 public:
  GroupedHead(const GroupedAttentionShape& shape, int64_t sample, int64_t head)
      : shape_(shape), first_row_(sample * shape.positions), head_(head) {}
  size_t query(int64_t position) const {
    const int64_t vector = (first_row_ + position) * shape_.heads + head_;
    return static_cast<size_t>(vector * shape_.head_width);
  }
  size_t key(int64_t position) const {
    const int64_t served = head_ / (shape_.heads / shape_.key_heads);
    const int64_t vector = (first_row_ + position) * shape_.key_heads + served;
    return static_cast<size_t>(vector * shape_.head_width);
  }
  int64_t first_seen(int64_t position) const {
    return shape_.window == 0 ? 0 : std::max<int64_t>(0, position - shape_.window + 1);
  }

 private:
  const GroupedAttentionShape& shape_;
  int64_t first_row_;
  int64_t head_;
};

/// Calls visit(head, position) for each query.
template <class Visit>
void for_each_query(const GroupedAttentionShape& shape, Visit visit) {
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const GroupedHead where(shape, sample, head);
      for (int64_t position = 0; position < shape.positions; ++position) {
        visit(where, position);
      }
    }
  }
}

template <class T>
T grouped_scale(const GroupedAttentionShape& shape) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width)));
}

/// How much `position` attends to each position from the first that it sees to itself.
template <class T>
void find_weights(const std::vector<T>& queries, const std::vector<T>& keys,
                  const GroupedAttentionShape& shape, const GroupedHead& head, int64_t position,
                  std::vector<T>& weights) {
  weights.clear();
  for (int64_t other = head.first_seen(position); other <= position; ++other) {
    weights.push_back(grouped_scale<T>(shape) *
                      dot(queries, head.query(position), keys, head.key(other), shape.head_width));
  }
  softmax_in_place(weights);
}

Values attended_of(const HeadStates& states, const GroupedAttentionShape& shape) {
  Values attended(states.query.dtype(), states.query.size());
  with_accumulator({&states.query}, [&]<class T>(T) {
    const std::vector<T> queries = numbers_of<T>(states.query);
    const std::vector<T> keys = numbers_of<T>(states.key);
    const std::vector<T> values = numbers_of<T>(states.value);
    std::vector<T> sums(queries.size());
    std::vector<T> weights;
    for_each_query(shape, [&](const GroupedHead& head, int64_t position) {
      find_weights(queries, keys, shape, head, position, weights);
      int64_t other = head.first_seen(position);
      for (const T weight : weights) {
        add_multiple(weight, values, head.key(other++), sums, head.query(position),
                     shape.head_width);
      }
    });
    store_numbers(sums, attended);
  });
  return attended;
}

/// With P the probabilities of a position and dP = dy value^T, the scores' gradient is
/// P (dP - sum(P dP)).
HeadStates core_gradients(const HeadStates& states, const Values& attended_gradient,
                          const GroupedAttentionShape& shape) {
  const DType dtype = states.query.dtype();
  HeadStates gradients{Values(dtype, states.query.size()), Values(dtype, states.key.size()),
                       Values(dtype, states.value.size())};
  with_accumulator({&states.query}, [&]<class T>(T) {
    const std::vector<T> queries = numbers_of<T>(states.query);
    const std::vector<T> keys = numbers_of<T>(states.key);
    const std::vector<T> values = numbers_of<T>(states.value);
    const std::vector<T> dy = numbers_of<T>(attended_gradient);
    std::vector<T> dq(queries.size());
    std::vector<T> dk(keys.size());
    std::vector<T> dv(values.size());
    std::vector<T> weights;
    std::vector<T> slopes;
    const int64_t width = shape.head_width;
    for_each_query(shape, [&](const GroupedHead& head, int64_t position) {
      const size_t here = head.query(position);
      const int64_t first = head.first_seen(position);
      find_weights(queries, keys, shape, head, position, weights);
      slopes.clear();
      T mean = 0;
      for (size_t i = 0; i < weights.size(); ++i) {
        const size_t there = head.key(first + static_cast<int64_t>(i));
        slopes.push_back(dot(dy, here, values, there, width));
        mean += weights[i] * slopes[i];
      }
      for (size_t i = 0; i < weights.size(); ++i) {
        const size_t there = head.key(first + static_cast<int64_t>(i));
        const T slope = grouped_scale<T>(shape) * (weights[i] * (slopes[i] - mean));
        add_multiple(slope, keys, there, dq, here, width);
        add_multiple(slope, queries, here, dk, there, width);
        add_multiple(weights[i], dy, here, dv, there, width);
      }
    });
    store_numbers(dq, gradients.query);
    store_numbers(dk, gradients.key);
    store_numbers(dv, gradients.value);
  });
  return gradients;
}

Values projected(const Values& input, const GroupedAttentionWeights& weights, Projection which,
                 const GroupedAttentionShape& shape, int64_t out, DType dtype) {
  Values result(dtype, shape.rows() * out);
  linear_forward(input, *weights.weights[which], weights.biases[which], shape.rows(), shape.embed,
                 out, result);
  return result;
}

RmsNormShape head_norm_shape(const Values& heads, const GroupedAttentionShape& shape) {
  return {heads.size() / shape.head_width, shape.head_width, *shape.norm_eps};
}

Values normalised_heads(const Values& heads, const Values& weight,
                        const GroupedAttentionShape& shape) {
  Values result(heads.dtype(), heads.size());
  rms_norm_forward(heads, &weight, head_norm_shape(heads, shape), result);
  return result;
}

HeadStates head_states(const Values& input, const GroupedAttentionWeights& weights,
                       const GroupedAttentionShape& shape, DType dtype) {
  HeadStates states{projected(input, weights, query_projection, shape, shape.query_width(), dtype),
                    projected(input, weights, key_projection, shape, shape.key_width(), dtype),
                    projected(input, weights, value_projection, shape, shape.key_width(), dtype)};
  if (shape.norm_eps) {
    states.query = normalised_heads(states.query, *weights.norms[query_projection], shape);
    states.key = normalised_heads(states.key, *weights.norms[key_projection], shape);
  }
  rotate_heads(shape, shape.heads, false, states.query);
  rotate_heads(shape, shape.key_heads, false, states.key);
  return states;
}

/// From the gradient of normalised heads that of the projection `which`; adds the weight's.
void normalise_back(const Values& input, const GroupedAttentionWeights& weights, Projection which,
                    const GroupedAttentionShape& shape, int64_t out,
                    const GroupedAttentionGradients& gradients, Values& gradient) {
  const Values heads = projected(input, weights, which, shape, out, gradient.dtype());
  const RmsNormShape norm = head_norm_shape(heads, shape);
  if (gradients.norms[which] != nullptr) {
    rms_norm_weight_gradient(heads, gradient, norm, *gradients.norms[which]);
  }
  Values result(gradient.dtype(), gradient.size());
  rms_norm_input_gradient(heads, gradient, weights.norms[which], norm, result);
  gradient = std::move(result);
}

/// What one projection of the input gets, from the gradient of its result.
void project_back(const Values& input, const Values& gradient,
                  const GroupedAttentionWeights& weights, Projection which,
                  const GroupedAttentionShape& shape, int64_t out, Values* input_gradient,
                  const GroupedAttentionGradients& gradients) {
  if (gradients.weights[which] != nullptr) {
    linear_weight_gradient(input, gradient, shape.rows(), shape.embed, out,
                           *gradients.weights[which]);
  }
  if (gradients.biases[which] != nullptr) {
    bias_weight_gradient(gradient, shape.rows(), out, *gradients.biases[which]);
  }
  if (input_gradient != nullptr) {
    Values share(input_gradient->dtype(), input_gradient->size());
    linear_input_gradient(gradient, *weights.weights[which], shape.rows(), shape.embed, out, share);
    accumulate(Reduction::sum, *input_gradient, share);
  }
}

/// From the gradients of turned query and key, and of value.
void project_all_back(const Values& input, HeadStates back, const GroupedAttentionWeights& weights,
                      const GroupedAttentionShape& shape, Values* input_gradient,
                      const GroupedAttentionGradients& gradients) {
  rotate_heads(shape, shape.heads, true, back.query);
  rotate_heads(shape, shape.key_heads, true, back.key);
  if (shape.norm_eps) {
    normalise_back(input, weights, query_projection, shape, shape.query_width(), gradients,
                   back.query);
    normalise_back(input, weights, key_projection, shape, shape.key_width(), gradients, back.key);
  }
  if (input_gradient != nullptr) {
    *input_gradient = Values(input_gradient->dtype(), input_gradient->size());
  }
  project_back(input, back.query, weights, query_projection, shape, shape.query_width(),
               input_gradient, gradients);
  project_back(input, back.key, weights, key_projection, shape, shape.key_width(), input_gradient,
               gradients);
  project_back(input, back.value, weights, value_projection, shape, shape.key_width(),
               input_gradient, gradients);
}

}  // namespace

void rotate_heads(const GroupedAttentionShape& shape, int64_t heads, bool back, Values& states) {
  const int64_t half = shape.head_width / 2;
  ensure(states.size() == shape.rows() * heads * shape.head_width, "a rotation's operand fits");
  Values cosines(states.dtype(), shape.positions * half);
  Values sines(states.dtype(), shape.positions * half);
  for (int64_t i = 0; i < cosines.size(); ++i) {
    const double exponent =
        -2 * static_cast<double>(i % half) / static_cast<double>(shape.head_width);
    const auto position = static_cast<double>(shape.place().in_sample(i / half));
    const double angle = position * std::pow(shape.theta, exponent);
    cosines.set(i, std::cos(angle));
    sines.set(i, back ? -std::sin(angle) : std::sin(angle));
  }
  with_accumulator({&states}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(states);
    const std::vector<T> cosine = numbers_of<T>(cosines);
    const std::vector<T> sine = numbers_of<T>(sines);
    for (int64_t vector = 0; vector < shape.rows() * heads; ++vector) {
      const int64_t position = vector / heads % shape.positions;
      for (int64_t i = 0; i < half; ++i) {
        T& first = x[static_cast<size_t>(vector * shape.head_width + i)];
        T& second = x[static_cast<size_t>(vector * shape.head_width + half + i)];
        const T c = cosine[static_cast<size_t>(position * half + i)];
        const T s = sine[static_cast<size_t>(position * half + i)];
        const T turned = first * c - second * s;
        second = second * c + first * s;
        first = turned;
      }
    }
    store_numbers(x, states);
  });
}

void grouped_attention_forward(const Values& input, const GroupedAttentionWeights& weights,
                               const GroupedAttentionShape& shape, Values& output) {
  const Values attended = attended_of(head_states(input, weights, shape, output.dtype()), shape);
  linear_forward(attended, *weights.weights[output_projection], weights.biases[output_projection],
                 shape.rows(), shape.query_width(), shape.embed, output);
}

void grouped_attention_backward(const Values& input, const GroupedAttentionWeights& weights,
                                const Values& output_gradient, const GroupedAttentionShape& shape,
                                Values* input_gradient,
                                const GroupedAttentionGradients& gradients) {
  const DType dtype = output_gradient.dtype();
  const int64_t query_width = shape.query_width();
  const HeadStates states = head_states(input, weights, shape, dtype);
  if (gradients.weights[output_projection] != nullptr) {
    linear_weight_gradient(attended_of(states, shape), output_gradient, shape.rows(), query_width,
                           shape.embed, *gradients.weights[output_projection]);
  }
  if (gradients.biases[output_projection] != nullptr) {
    bias_weight_gradient(output_gradient, shape.rows(), shape.embed,
                         *gradients.biases[output_projection]);
  }
  Values attended_gradient(dtype, shape.rows() * query_width);
  linear_input_gradient(output_gradient, *weights.weights[output_projection], shape.rows(),
                        query_width, shape.embed, attended_gradient);
  project_all_back(input, core_gradients(states, attended_gradient, shape), weights, shape,
                   input_gradient, gradients);
}

void turned_projections_forward(const Values& input, const GroupedAttentionWeights& weights,
                                const GroupedAttentionShape& shape, Values& output) {
  const HeadStates states = head_states(input, weights, shape, output.dtype());
  join_columns({&states.query, &states.key, &states.value}, shape.rows(), 1, output);
}

void turned_projections_backward(const Values& input, const GroupedAttentionWeights& weights,
                                 const Values& output_gradient, const GroupedAttentionShape& shape,
                                 Values* input_gradient,
                                 const GroupedAttentionGradients& gradients) {
  const DType dtype = output_gradient.dtype();
  HeadStates back{Values(dtype, shape.rows() * shape.query_width()),
                  Values(dtype, shape.rows() * shape.key_width()),
                  Values(dtype, shape.rows() * shape.key_width())};
  part_columns(output_gradient, shape.rows(), 1, {&back.query, &back.key, &back.value});
  project_all_back(input, std::move(back), weights, shape, input_gradient, gradients);
}

}  // namespace lockstep
