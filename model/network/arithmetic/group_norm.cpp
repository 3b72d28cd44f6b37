#include "model/network/arithmetic/group_norm.hpp"

#include <cmath>
#include <span>

#include "model/core/ensure.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

template <class T>
std::vector<T> numbers_or_ones(const Values* values, int64_t size) {
  return values == nullptr ? std::vector<T>(static_cast<size_t>(size), T{1})
                           : numbers_of<T>(*values);
}

/// Turns numbers into (x - mean) / sqrt(variance + eps); returns 1 / sqrt(variance + eps).
template <class T>
T normalise(std::span<T> group, double eps) {
  const T count = static_cast<T>(group.size());
  T mean = 0;
  for (const T number : group) {
    mean += number;
  }
  mean /= count;
  T variance = 0;
  for (T& number : group) {
    number -= mean;
    variance += number * number;
  }
  const T inverse = T{1} / std::sqrt(variance / count + static_cast<T>(eps));
  for (T& number : group) {
    number *= inverse;
  }
  return inverse;
}

/// Calls visit(first, group, channel) with each group's elements, the index of its first element
/// and of its first channel.
template <class T, class Visit>
void for_each_group(std::vector<T>& numbers, const GroupNormShape& shape, Visit visit) {
  const auto channels = static_cast<size_t>(shape.channels / shape.groups);
  const size_t width = channels * static_cast<size_t>(shape.positions);
  const auto groups = static_cast<size_t>(shape.samples * shape.groups);
  for (size_t group = 0; group < groups; ++group) {
    visit(group * width, std::span<T>(numbers).subspan(group * width, width),
          group % static_cast<size_t>(shape.groups) * channels);
  }
}

void ensure_fits(const Values& input, const Values& other, const GroupNormShape& shape) {
  ensure(input.size() == shape.samples * shape.channels * shape.positions &&
             input.size() == other.size() && shape.channels % shape.groups == 0,
         "a group norm's operands fit");
}

/// Turns a row into x / sqrt(mean(x^2) + eps); returns 1 / sqrt(mean(x^2) + eps).
template <class T>
T scale_to_one(std::span<T> row, double eps) {
  T squares = 0;
  for (const T number : row) {
    squares += number * number;
  }
  const T inverse = T{1} / std::sqrt(squares / static_cast<T>(row.size()) + static_cast<T>(eps));
  for (T& number : row) {
    number *= inverse;
  }
  return inverse;
}

template <class T, class Visit>
void for_each_row(std::vector<T>& numbers, const RmsNormShape& shape, Visit visit) {
  const auto width = static_cast<size_t>(shape.width);
  for (size_t first = 0; first < numbers.size(); first += width) {
    visit(first, std::span<T>(numbers).subspan(first, width));
  }
}

void ensure_fits(const Values& input, const Values& other, const RmsNormShape& shape) {
  ensure(input.size() == shape.rows * shape.width && input.size() == other.size(),
         "an RMS norm's operands fit");
}

}  // namespace

void group_norm_forward(const Values& input, const Values* weight, const Values* bias,
                        const GroupNormShape& shape, Values& output) {
  ensure_fits(input, output, shape);
  with_accumulator({&input, weight, bias, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    const std::vector<T> factor = numbers_or_ones<T>(weight, shape.channels);
    const std::vector<T> shift = bias == nullptr
                                     ? std::vector<T>(static_cast<size_t>(shape.channels))
                                     : numbers_of<T>(*bias);
    const auto positions = static_cast<size_t>(shape.positions);
    for_each_group(y, shape, [&](size_t, std::span<T> group, size_t channel) {
      normalise(group, shape.eps);
      for (size_t i = 0; i < group.size(); ++i) {
        const size_t of = channel + i / positions;
        group[i] = group[i] * factor[of] + shift[of];
      }
    });
    store_numbers(y, output);
  });
}

void group_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values* weight, const GroupNormShape& shape,
                               Values& input_gradient) {
  ensure_fits(input, output_gradient, shape);
  ensure_fits(input, input_gradient, shape);
  with_accumulator({&input, &output_gradient, weight, &input_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> factor = numbers_or_ones<T>(weight, shape.channels);
    const auto positions = static_cast<size_t>(shape.positions);
    for_each_group(x, shape, [&](size_t first, std::span<T> normalised, size_t channel) {
      const T inverse = normalise(normalised, shape.eps);
      const auto group = std::span<T>(gradient).subspan(first, normalised.size());
      const T count = static_cast<T>(group.size());
      T sum = 0;
      T product = 0;
      for (size_t i = 0; i < group.size(); ++i) {
        group[i] *= factor[channel + i / positions];
        sum += group[i];
        product += group[i] * normalised[i];
      }
      for (size_t i = 0; i < group.size(); ++i) {
        group[i] = inverse * (group[i] - sum / count - normalised[i] * (product / count));
      }
    });
    store_numbers(gradient, input_gradient);
  });
}

void group_norm_weight_gradients(const Values& input, const Values& output_gradient,
                                 const GroupNormShape& shape, Values& weight_gradient,
                                 Values& bias_gradient) {
  ensure_fits(input, output_gradient, shape);
  with_accumulator({&input, &output_gradient, &weight_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(shape.channels));
    std::vector<T> db(static_cast<size_t>(shape.channels));
    const auto positions = static_cast<size_t>(shape.positions);
    for_each_group(x, shape, [&](size_t first, std::span<T> normalised, size_t channel) {
      normalise(normalised, shape.eps);
      for (size_t i = 0; i < normalised.size(); ++i) {
        const size_t of = channel + i / positions;
        dw[of] += dy[first + i] * normalised[i];
        db[of] += dy[first + i];
      }
    });
    accumulate_numbers(dw, weight_gradient);
    accumulate_numbers(db, bias_gradient);
  });
}

void rms_norm_forward(const Values& input, const Values* weight, const RmsNormShape& shape,
                      Values& output) {
  ensure_fits(input, output, shape);
  with_accumulator({&input, weight, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    const std::vector<T> factor = numbers_or_ones<T>(weight, shape.width);
    for_each_row(y, shape, [&](size_t, std::span<T> row) {
      scale_to_one(row, shape.eps);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] *= factor[i];
      }
    });
    store_numbers(y, output);
  });
}

void rms_norm_input_gradient(const Values& input, const Values& output_gradient,
                             const Values* weight, const RmsNormShape& shape,
                             Values& input_gradient) {
  ensure_fits(input, output_gradient, shape);
  ensure_fits(input, input_gradient, shape);
  with_accumulator({&input, &output_gradient, weight, &input_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> factor = numbers_or_ones<T>(weight, shape.width);
    for_each_row(x, shape, [&](size_t first, std::span<T> scaled) {
      const T inverse = scale_to_one(scaled, shape.eps);
      const auto row = std::span<T>(gradient).subspan(first, scaled.size());
      T product = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] *= factor[i];
        product += row[i] * scaled[i];
      }
      const T mean = product / static_cast<T>(row.size());
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = inverse * (row[i] - scaled[i] * mean);
      }
    });
    store_numbers(gradient, input_gradient);
  });
}

void rms_norm_weight_gradient(const Values& input, const Values& output_gradient,
                              const RmsNormShape& shape, Values& weight_gradient) {
  ensure_fits(input, output_gradient, shape);
  with_accumulator({&input, &output_gradient, &weight_gradient}, [&]<class T>(T) {
    std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(shape.width));
    for_each_row(x, shape, [&](size_t first, std::span<T> scaled) {
      scale_to_one(scaled, shape.eps);
      for (size_t i = 0; i < scaled.size(); ++i) {
        dw[i] += dy[first + i] * scaled[i];
      }
    });
    accumulate_numbers(dw, weight_gradient);
  });
}

}  // namespace lockstep
