#pragma once

#include <cstdint>
#include <vector>

#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

/// Where the vectors of query, key or value lie: of group g and position i, head h, at
/// (g positions + i) stride + offset + h width.
struct HeadRows {
  int64_t positions = 1;
  int64_t stride = 1;
  int64_t offset = 0;
};

/// Attention of a query to all keys of its group, with a number added to each score. Groups are
/// samples, or windows of samples.
struct BiasedAttentionShape {
  int64_t groups = 1;
  int64_t heads = 1;
  int64_t width = 1;  ///< of a head
  double scale = 1;
  HeadRows query{};
  HeadRows key{};
  HeadRows value{};
  HeadRows sum{};  ///< of values, as many positions as the query has

  size_t at(const HeadRows& rows, int64_t group, int64_t position, int64_t head) const {
    return static_cast<size_t>((group * rows.positions + position) * rows.stride + rows.offset +
                               head * width);
  }
};

/// The probabilities of one query. `bias(group, head, position, other)` is added to a score.
template <class T, class Bias>
void biased_probabilities(const BiasedAttentionShape& shape, const std::vector<T>& query,
                          const std::vector<T>& key, const Bias& bias, int64_t group, int64_t head,
                          int64_t position, std::vector<T>& found) {
  const size_t from = shape.at(shape.query, group, position, head);
  found.resize(static_cast<size_t>(shape.key.positions));
  for (int64_t other = 0; other < shape.key.positions; ++other) {
    found[static_cast<size_t>(other)] =
        static_cast<T>(shape.scale) *
            dot(query, from, key, shape.at(shape.key, group, other, head), shape.width) +
        bias(group, head, position, other);
  }
  softmax_in_place(found);
}

template <class Visit>
void for_each_biased_query(const BiasedAttentionShape& shape, Visit visit) {
  for (int64_t group = 0; group < shape.groups; ++group) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      for (int64_t position = 0; position < shape.query.positions; ++position) {
        visit(group, head, position);
      }
    }
  }
}

/// Adds the weighted sums to `sum`.
template <class T, class Bias>
void biased_attention_forward(const BiasedAttentionShape& shape, const std::vector<T>& query,
                              const std::vector<T>& key, const std::vector<T>& value,
                              const Bias& bias, std::vector<T>& sum) {
  std::vector<T> probabilities;
  for_each_biased_query(shape, [&](int64_t group, int64_t head, int64_t position) {
    biased_probabilities(shape, query, key, bias, group, head, position, probabilities);
    const size_t to = shape.at(shape.sum, group, position, head);
    for (int64_t other = 0; other < shape.value.positions; ++other) {
      add_multiple(probabilities[static_cast<size_t>(other)], value,
                   shape.at(shape.value, group, other, head), sum, to, shape.width);
    }
  });
}

/// Gradients of query, key and value; they are added to, and may be one vector.
template <class T>
struct BiasedAttentionGradients {
  std::vector<T>& query;
  std::vector<T>& key;
  std::vector<T>& value;
};

/// `bias_gradient(group, head, position, other, slope)` takes the gradient of a score.
template <class T, class Bias, class BiasGradient>
void biased_attention_backward(const BiasedAttentionShape& shape, const std::vector<T>& query,
                               const std::vector<T>& key, const std::vector<T>& value,
                               const Bias& bias, const std::vector<T>& sum_gradient,
                               const BiasedAttentionGradients<T>& gradients,
                               const BiasGradient& bias_gradient) {
  std::vector<T> probabilities;
  std::vector<T> slopes(static_cast<size_t>(shape.key.positions));
  for_each_biased_query(shape, [&](int64_t group, int64_t head, int64_t position) {
    biased_probabilities(shape, query, key, bias, group, head, position, probabilities);
    const size_t from = shape.at(shape.sum, group, position, head);
    T mean = 0;
    for (int64_t other = 0; other < shape.key.positions; ++other) {
      const size_t there = shape.at(shape.value, group, other, head);
      const T probability = probabilities[static_cast<size_t>(other)];
      T& slope = slopes[static_cast<size_t>(other)];
      slope = dot(sum_gradient, from, value, there, shape.width);
      mean += probability * slope;
      add_multiple(probability, sum_gradient, from, gradients.value, there, shape.width);
    }
    const size_t asks = shape.at(shape.query, group, position, head);
    for (int64_t other = 0; other < shape.key.positions; ++other) {
      const size_t there = shape.at(shape.key, group, other, head);
      const T slope =
          probabilities[static_cast<size_t>(other)] * (slopes[static_cast<size_t>(other)] - mean);
      bias_gradient(group, head, position, other, slope);
      add_multiple(static_cast<T>(shape.scale) * slope, key, there, gradients.query, asks,
                   shape.width);
      add_multiple(static_cast<T>(shape.scale) * slope, query, asks, gradients.key, there,
                   shape.width);
    }
  });
}

}  // namespace lockstep
