#include "model/network/arithmetic/attention.hpp"

#include <cmath>

#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

namespace {

constexpr int64_t projections = 3;
enum Part : int64_t { query, key, value };

/// Where the vectors of one head of one sample begin.
class Head {
 public:
  Head(const AttentionShape& shape, int64_t sample, int64_t head)
      : shape_(shape), first_row_(sample * shape.positions), head_(head) {}
  size_t in(Part part, int64_t position) const {
    const int64_t row = (first_row_ + position) * projections + part;
    return static_cast<size_t>((row * shape_.heads + head_) * shape_.head_width);
  }
  size_t out(int64_t position) const {
    const int64_t row = (first_row_ + position) * shape_.heads;
    return static_cast<size_t>((row + head_) * shape_.head_width);
  }
  /// Positions that `position` attends to.
  int64_t seen(int64_t position) const { return shape_.causal ? position + 1 : shape_.positions; }

 private:
  const AttentionShape& shape_;
  int64_t first_row_;
  int64_t head_;
};

template <class Visit>
void for_each_head(const AttentionShape& shape, Visit visit) {
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      visit(Head(shape, sample, head));
    }
  }
}

template <class T>
T score_scale(const AttentionShape& shape) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width)));
}

/// How much `position` attends to each position that it sees.
template <class T>
void find_probabilities(const std::vector<T>& p, const AttentionShape& shape, const Head& head,
                        int64_t position, std::vector<T>& probabilities) {
  probabilities.resize(static_cast<size_t>(head.seen(position)));
  for (size_t other = 0; other < probabilities.size(); ++other) {
    probabilities[other] =
        score_scale<T>(shape) * dot(p, head.in(query, position), p,
                                    head.in(key, static_cast<int64_t>(other)), shape.head_width);
  }
  softmax_in_place(probabilities);
}

void ensure_fits(const Values& projected, const Values& attended, const AttentionShape& shape) {
  ensure(attended.size() == shape.rows() * shape.width() &&
             projected.size() == projections * attended.size(),
         "an attention's operands fit");
}

Values projected_of(const Values& input, const AttentionWeights& weights,
                    const AttentionShape& shape, DType dtype) {
  Values projected(dtype, projections * input.size());
  linear_forward(input, *weights.in_weight, weights.in_bias, shape.rows(), shape.width(),
                 projections * shape.width(), projected);
  return projected;
}

}  // namespace

void attention_forward(const Values& projected, const AttentionShape& shape, Values& attended) {
  ensure_fits(projected, attended, shape);
  with_accumulator({&projected, &attended}, [&]<class T>(T) {
    const std::vector<T> p = numbers_of<T>(projected);
    std::vector<T> y(static_cast<size_t>(attended.size()));
    std::vector<T> probabilities;
    for_each_head(shape, [&](const Head& head) {
      for (int64_t position = 0; position < shape.positions; ++position) {
        find_probabilities(p, shape, head, position, probabilities);
        for (int64_t other = 0; other < head.seen(position); ++other) {
          add_multiple(probabilities[static_cast<size_t>(other)], p, head.in(value, other), y,
                       head.out(position), shape.head_width);
        }
      }
    });
    store_numbers(y, attended);
  });
}

// With P the probabilities of a position and dP = dy value^T, the scores' gradient is
// P (dP - sum(P dP)).
void attention_backward(const Values& projected, const Values& attended_gradient,
                        const AttentionShape& shape, Values& projected_gradient) {
  ensure_fits(projected, attended_gradient, shape);
  ensure(projected_gradient.size() == projected.size(), "an attention's operands fit");
  with_accumulator({&projected, &attended_gradient, &projected_gradient}, [&]<class T>(T) {
    const std::vector<T> p = numbers_of<T>(projected);
    const std::vector<T> dy = numbers_of<T>(attended_gradient);
    const int64_t width = shape.head_width;
    std::vector<T> dp(p.size());
    std::vector<T> probabilities;
    std::vector<T> slopes;
    for_each_head(shape, [&](const Head& head) {
      for (int64_t position = 0; position < shape.positions; ++position) {
        find_probabilities(p, shape, head, position, probabilities);
        slopes.assign(probabilities.size(), T{0});
        T mean = 0;
        for (size_t i = 0; i < slopes.size(); ++i) {
          slopes[i] =
              dot(dy, head.out(position), p, head.in(value, static_cast<int64_t>(i)), width);
          mean += probabilities[i] * slopes[i];
        }
        for (size_t i = 0; i < slopes.size(); ++i) {
          const auto other = static_cast<int64_t>(i);
          const T slope = score_scale<T>(shape) * (probabilities[i] * (slopes[i] - mean));
          add_multiple(slope, p, head.in(key, other), dp, head.in(query, position), width);
          add_multiple(slope, p, head.in(query, position), dp, head.in(key, other), width);
          add_multiple(probabilities[i], dy, head.out(position), dp, head.in(value, other), width);
        }
      }
    });
    store_numbers(dp, projected_gradient);
  });
}

void self_attention_forward(const Values& input, const AttentionWeights& weights,
                            const AttentionShape& shape, Values& output) {
  const Values projected = projected_of(input, weights, shape, output.dtype());
  Values attended(output.dtype(), output.size());
  attention_forward(projected, shape, attended);
  linear_forward(attended, *weights.out_weight, weights.out_bias, shape.rows(), shape.width(),
                 shape.width(), output);
}

void self_attention_backward(const Values& input, const AttentionWeights& weights,
                             const Values& output_gradient, const AttentionShape& shape,
                             Values* input_gradient, const AttentionGradients& gradients) {
  const DType dtype = output_gradient.dtype();
  const int64_t rows = shape.rows();
  const int64_t width = shape.width();
  const Values projected = projected_of(input, weights, shape, dtype);
  if (gradients.out_weight != nullptr) {
    Values attended(dtype, output_gradient.size());
    attention_forward(projected, shape, attended);
    linear_weight_gradient(attended, output_gradient, rows, width, width, *gradients.out_weight);
  }
  if (gradients.out_bias != nullptr) {
    bias_weight_gradient(output_gradient, rows, width, *gradients.out_bias);
  }
  Values attended_gradient(dtype, output_gradient.size());
  linear_input_gradient(output_gradient, *weights.out_weight, rows, width, width,
                        attended_gradient);
  Values projected_gradient(dtype, projected.size());
  attention_backward(projected, attended_gradient, shape, projected_gradient);
  if (gradients.in_weight != nullptr) {
    linear_weight_gradient(input, projected_gradient, rows, width, projections * width,
                           *gradients.in_weight);
  }
  if (gradients.in_bias != nullptr) {
    bias_weight_gradient(projected_gradient, rows, projections * width, *gradients.in_bias);
  }
  if (input_gradient != nullptr) {
    linear_input_gradient(projected_gradient, *weights.in_weight, rows, width, projections * width,
                          *input_gradient);
  }
}

}  // namespace lockstep
