#include "model/network/arithmetic/layer_norm.hpp"

#include <cmath>
#include <span>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// Turns a row into (row - mean) / sqrt(variance + eps); returns 1 / sqrt(variance + eps).
template <class T>
T normalise_row(std::span<T> row, double eps) {
  const T count = static_cast<T>(row.size());
  T mean = 0;
  for (const T number : row) {
    mean += number;
  }
  mean /= count;
  T variance = 0;
  for (T& number : row) {
    number -= mean;
    variance += number * number;
  }
  variance /= count;
  const T inverse = T{1} / std::sqrt(variance + static_cast<T>(eps));
  for (T& number : row) {
    number *= inverse;
  }
  return inverse;
}

/// Calls visit(first, row) with each row and the index of its first element.
template <class T, class Visit>
void for_each_row(std::vector<T>& numbers, const LayerNormShape& shape, Visit visit) {
  const auto width = static_cast<size_t>(shape.width);
  for (size_t first = 0; first < numbers.size(); first += width) {
    visit(first, std::span<T>(numbers).subspan(first, width));
  }
}

template <class T>
std::vector<T> numbers_or(const Values* values, const LayerNormShape& shape, T otherwise) {
  return values == nullptr ? std::vector<T>(static_cast<size_t>(shape.width), otherwise)
                           : numbers_of<T>(*values);
}

void ensure_fits(const Values& input, const Values& other, const LayerNormShape& shape) {
  ensure(input.size() == shape.rows * shape.width && input.size() == other.size(),
         "a layer norm's operands fit");
}

}  // namespace

void layer_norm_forward(const Values& input, const Values* weight, const Values* bias,
                        const LayerNormShape& shape, Values& output) {
  ensure_fits(input, output, shape);
  with_accumulator({&input, weight, bias, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    const std::vector<T> factor = numbers_or<T>(weight, shape, 1);
    const std::vector<T> shift = numbers_or<T>(bias, shape, 0);
    for_each_row(y, shape, [&](size_t, std::span<T> row) {
      normalise_row(row, shape.eps);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = row[i] * factor[i] + shift[i];
      }
    });
    store_numbers(y, output);
  });
}

void layer_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values* weight, const LayerNormShape& shape,
                               Values& input_gradient) {
  ensure_fits(input, output_gradient, shape);
  ensure_fits(input, input_gradient, shape);
  with_accumulator({&input, &output_gradient, weight, &input_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> factor = numbers_or<T>(weight, shape, 1);
    const T count = static_cast<T>(shape.width);
    for_each_row(x, shape, [&](size_t first, std::span<T> normalised) {
      const T inverse = normalise_row(normalised, shape.eps);
      const auto row = std::span<T>(gradient).subspan(first, normalised.size());
      T sum = 0;
      T product = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] *= factor[i];
        sum += row[i];
        product += row[i] * normalised[i];
      }
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = inverse * (row[i] - sum / count - normalised[i] * (product / count));
      }
    });
    store_numbers(gradient, input_gradient);
  });
}

void layer_norm_weight_gradients(const Values& input, const Values& output_gradient,
                                 const LayerNormShape& shape, Values& weight_gradient,
                                 Values* bias_gradient) {
  ensure_fits(input, output_gradient, shape);
  ensure(weight_gradient.size() == shape.width, "a layer norm's operands fit");
  with_accumulator({&input, &output_gradient, &weight_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(shape.width));
    std::vector<T> db(static_cast<size_t>(shape.width));
    for_each_row(x, shape, [&](size_t first, std::span<T> normalised) {
      normalise_row(normalised, shape.eps);
      for (size_t i = 0; i < normalised.size(); ++i) {
        dw[i] += dy[first + i] * normalised[i];
        db[i] += dy[first + i];
      }
    });
    accumulate_numbers(dw, weight_gradient);
    if (bias_gradient != nullptr) {
      accumulate_numbers(db, *bias_gradient);
    }
  });
}

}  // namespace lockstep
