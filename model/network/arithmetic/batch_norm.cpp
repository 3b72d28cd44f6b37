#include "model/network/arithmetic/batch_norm.hpp"

#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// 1 / sqrt(variance + eps) for each channel.
template <class T>
std::vector<T> inverse_deviations(const Values& variance, double eps) {
  std::vector<T> inverse = numbers_of<T>(variance);
  for (T& value : inverse) {
    value = T{1} / std::sqrt(value + static_cast<T>(eps));
  }
  return inverse;
}

/// Given values, or `otherwise` for each channel.
template <class T>
std::vector<T> numbers_or(const Values* values, const BatchNormShape& shape, T otherwise) {
  return values == nullptr ? std::vector<T>(static_cast<size_t>(shape.channels), otherwise)
                           : numbers_of<T>(*values);
}

void ensure_fits(const Values& elements, const Values& channels, const BatchNormShape& shape) {
  ensure(elements.size() == shape.elements() && channels.size() == shape.channels,
         "a batch norm's operands fit");
}

}  // namespace

void batch_norm_statistics(const Values& input, const BatchNormShape& shape, Values& mean,
                           Values& variance) {
  ensure_fits(input, mean, shape);
  if (shape.values_per_channel() < 2) {
    throw ArithmeticError("batch norm in training needs more than one value per channel",
                          "use a batch size of at least 2, or drop_last");
  }
  with_accumulator({&input, &mean, &variance}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const T count = static_cast<T>(shape.values_per_channel());
    std::vector<T> center(static_cast<size_t>(shape.channels));
    shape.for_each_element([&](size_t i, size_t channel) { center[channel] += x[i]; });
    for (T& value : center) {
      value /= count;
    }
    std::vector<T> spread(center.size());
    shape.for_each_element([&](size_t i, size_t channel) {
      spread[channel] += (x[i] - center[channel]) * (x[i] - center[channel]);
    });
    for (T& value : spread) {
      value /= count;
    }
    store_numbers(center, mean);
    store_numbers(spread, variance);
  });
}

void batch_norm_update_running(const Values& mean, const Values& variance,
                               int64_t values_per_channel, double momentum, Values& running_mean,
                               Values& running_variance, Values& batches_tracked) {
  ensure(values_per_channel > 1, "an unbiased variance needs two values");
  with_accumulator({&running_mean, &running_variance}, [&]<class T>(T) {
    const auto blend = [&](const Values& statistic, T factor, Values& running) {
      std::vector<T> old = numbers_of<T>(running);
      const std::vector<T> fresh = numbers_of<T>(statistic);
      ensure(old.size() == fresh.size(), "a batch norm's operands fit");
      const T keep = static_cast<T>(1 - momentum);
      const T take = static_cast<T>(momentum);
      for (size_t i = 0; i < old.size(); ++i) {
        old[i] = keep * old[i] + take * (fresh[i] * factor);
      }
      store_numbers(old, running);
    };
    const T unbiased = static_cast<T>(values_per_channel) / static_cast<T>(values_per_channel - 1);
    blend(mean, T{1}, running_mean);
    blend(variance, unbiased, running_variance);
  });
  batches_tracked.set_integer(0, batches_tracked.integer(0) + 1);
}

void batch_norm_normalise(const Values& input, const Values& mean, const Values& variance,
                          const Values* weight, const Values* bias, const BatchNormShape& shape,
                          double eps, Values& output) {
  ensure_fits(input, mean, shape);
  with_accumulator({&input, &mean, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    const std::vector<T> center = numbers_of<T>(mean);
    const std::vector<T> inverse = inverse_deviations<T>(variance, eps);
    const std::vector<T> factor = numbers_or<T>(weight, shape, 1);
    const std::vector<T> shift = numbers_or<T>(bias, shape, 0);
    shape.for_each_element([&](size_t i, size_t channel) {
      y[i] = (y[i] - center[channel]) * inverse[channel] * factor[channel] + shift[channel];
    });
    store_numbers(y, output);
  });
}

void batch_norm_gradient_sums(const Values& input, const Values& output_gradient,
                              const Values& mean, const Values& variance,
                              const BatchNormShape& shape, double eps, Values& gradient_sum,
                              Values& product_sum) {
  ensure_fits(input, mean, shape);
  ensure_fits(output_gradient, gradient_sum, shape);
  with_accumulator({&input, &output_gradient, &gradient_sum}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    const std::vector<T> center = numbers_of<T>(mean);
    const std::vector<T> inverse = inverse_deviations<T>(variance, eps);
    std::vector<T> sum(center.size());
    std::vector<T> product(center.size());
    shape.for_each_element([&](size_t i, size_t channel) {
      sum[channel] += dy[i];
      product[channel] += dy[i] * ((x[i] - center[channel]) * inverse[channel]);
    });
    store_numbers(sum, gradient_sum);
    store_numbers(product, product_sum);
  });
}

void batch_norm_input_gradient(const Values& input, const Values& output_gradient,
                               const Values& mean, const Values& variance, const Values* weight,
                               const Values& gradient_sum, const Values& product_sum,
                               int64_t values_per_channel, const BatchNormShape& shape, double eps,
                               Values& input_gradient) {
  ensure_fits(input, mean, shape);
  ensure_fits(output_gradient, gradient_sum, shape);
  with_accumulator({&input, &output_gradient, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> center = numbers_of<T>(mean);
    const std::vector<T> inverse = inverse_deviations<T>(variance, eps);
    const std::vector<T> factor = numbers_or<T>(weight, shape, 1);
    const std::vector<T> sum = numbers_of<T>(gradient_sum);
    const std::vector<T> product = numbers_of<T>(product_sum);
    const T count = static_cast<T>(values_per_channel);
    shape.for_each_element([&](size_t i, size_t channel) {
      const T normalised = (x[i] - center[channel]) * inverse[channel];
      const T centered =
          gradient[i] - sum[channel] / count - normalised * (product[channel] / count);
      gradient[i] = factor[channel] * inverse[channel] * centered;
    });
    store_numbers(gradient, input_gradient);
  });
}

void batch_norm_input_gradient_of_evaluation(const Values& output_gradient, const Values& variance,
                                             const Values* weight, const BatchNormShape& shape,
                                             double eps, Values& input_gradient) {
  ensure_fits(output_gradient, variance, shape);
  with_accumulator({&output_gradient, &input_gradient}, [&]<class T>(T) {
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> inverse = inverse_deviations<T>(variance, eps);
    const std::vector<T> factor = numbers_or<T>(weight, shape, 1);
    shape.for_each_element(
        [&](size_t i, size_t channel) { gradient[i] *= factor[channel] * inverse[channel]; });
    store_numbers(gradient, input_gradient);
  });
}

}  // namespace lockstep
