#include "model/network/arithmetic/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

void sgd_step(const SgdOptions& options, int64_t step, const Values& gradient,
              Values* momentum_buffer, Values& parameter) {
  ensure(gradient.size() == parameter.size(), "a gradient has its parameter's size");
  ensure(step >= 1, "steps count from 1");
  ensure((momentum_buffer != nullptr) == (options.momentum != 0), "momentum has its buffer");
  with_accumulator({&gradient, &parameter, momentum_buffer}, [&]<class T>(T) {
    std::vector<T> direction = numbers_of<T>(gradient);
    std::vector<T> weights = numbers_of<T>(parameter);
    if (options.maximize) {
      std::ranges::transform(direction, direction.begin(), std::negate());
    }
    if (options.weight_decay != 0) {
      for (size_t i = 0; i < weights.size(); ++i) {
        direction[i] += static_cast<T>(options.weight_decay) * weights[i];
      }
    }
    if (momentum_buffer != nullptr) {
      const T momentum = static_cast<T>(options.momentum);
      const T take = static_cast<T>(1 - options.dampening);
      std::vector<T> velocity = numbers_of<T>(*momentum_buffer);
      for (size_t i = 0; i < weights.size(); ++i) {
        velocity[i] = step == 1 ? direction[i] : momentum * velocity[i] + take * direction[i];
        direction[i] = options.nesterov ? direction[i] + momentum * velocity[i] : velocity[i];
      }
      store_numbers(velocity, *momentum_buffer);
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] -= static_cast<T>(options.lr) * direction[i];
    }
    store_numbers(weights, parameter);
  });
}

void adam_step(const AdamOptions& options, int64_t step, const Values& gradient,
               Values& first_moment, Values& second_moment, Values& parameter,
               Values* largest_moment) {
  ensure(gradient.size() == parameter.size(), "a gradient has its parameter's size");
  ensure(step >= 1, "steps count from 1");
  with_accumulator({&gradient, &first_moment, &second_moment, &parameter}, [&]<class T>(T) {
    const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
    const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
    const T step_size = static_cast<T>(options.lr / correction1);
    const T root_correction = static_cast<T>(std::sqrt(correction2));
    const T decay = static_cast<T>(options.weight_decay);
    const T shrink = static_cast<T>(1 - options.lr * options.weight_decay);
    std::vector<T> g = numbers_of<T>(gradient);
    std::vector<T> m = numbers_of<T>(first_moment);
    std::vector<T> v = numbers_of<T>(second_moment);
    std::vector<T> largest = largest_moment == nullptr ? v : numbers_of<T>(*largest_moment);
    std::vector<T> weights = numbers_of<T>(parameter);
    for (size_t i = 0; i < weights.size(); ++i) {
      g[i] = options.maximize ? -g[i] : g[i];
      if (options.decoupled_weight_decay) {
        weights[i] *= shrink;
      } else {
        g[i] += decay * weights[i];
      }
      m[i] += static_cast<T>(1 - options.beta1) * (g[i] - m[i]);
      v[i] = static_cast<T>(options.beta2) * v[i] + static_cast<T>(1 - options.beta2) * g[i] * g[i];
      largest[i] = largest_moment == nullptr ? v[i] : std::max(largest[i], v[i]);
      const T denominator = std::sqrt(largest[i]) / root_correction + static_cast<T>(options.eps);
      weights[i] -= step_size * (m[i] / denominator);
    }
    if (largest_moment != nullptr) {
      store_numbers(largest, *largest_moment);
    }
    store_numbers(m, first_moment);
    store_numbers(v, second_moment);
    store_numbers(weights, parameter);
  });
}

void qadam_step(const QAdamOptions& options, int64_t step, const Values& gradient,
                Values& first_moment, Values& second_moment, Values& parameter) {
  ensure(gradient.size() == parameter.size(), "a gradient has its parameter's size");
  ensure(step >= 1, "steps count from 1");
  with_accumulator({&gradient, &first_moment, &second_moment, &parameter}, [&]<class T>(T) {
    const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
    const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
    const T step_size = static_cast<T>(options.lr / correction1);
    const T root_correction = static_cast<T>(std::sqrt(correction2));
    const std::vector<T> g = numbers_of<T>(gradient);
    std::vector<T> m = numbers_of<T>(first_moment);
    std::vector<T> v = numbers_of<T>(second_moment);
    std::vector<T> weights = numbers_of<T>(parameter);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (options.updates_moments) {
        m[i] = static_cast<T>(options.beta1) * m[i] + static_cast<T>(1 - options.beta1) * g[i];
        v[i] =
            static_cast<T>(options.beta2) * v[i] + static_cast<T>(1 - options.beta2) * g[i] * g[i];
      }
      const T denominator = std::sqrt(v[i]) / root_correction + static_cast<T>(options.eps);
      weights[i] -= step_size * (m[i] / denominator);
    }
    store_numbers(m, first_moment);
    store_numbers(v, second_moment);
    store_numbers(weights, parameter);
  });
}

double largest_adam_ratio(const AdamOptions& options, int64_t step) {
  ensure(step >= 1, "steps count from 1");
  const double forgetting = options.beta1 * options.beta1 / options.beta2;
  double sum = 0;
  double term = 1;
  for (int64_t j = 0; j < step && term > sum * 1e-17; ++j) {
    sum += term;
    term *= forgetting;
  }
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  const double ratio = (1 - options.beta1) * std::sqrt(sum / (1 - options.beta2)) *
                       std::sqrt(correction2) / correction1;
  return std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity();
}

void add_adam_sensitivity(const AdamOptions& options, int64_t step, double largest_gradient,
                          const Values& second_moment, UpdateSensitivity& sensitivity) {
  const double ratio = largest_adam_ratio(options, step);
  const double root_correction = std::sqrt(1 - std::pow(options.beta2, static_cast<double>(step)));
  const std::vector<double> v = numbers_of<double>(second_moment);
  sensitivity.by_error.resize(v.size());
  sensitivity.largest_gradient = std::max(sensitivity.largest_gradient, largest_gradient);
  const double rate = std::abs(options.lr);  // schedulers may go below 0
  const double reach = rate * (1 + ratio);
  for (size_t i = 0; i < v.size(); ++i) {
    const double denominator = std::sqrt(v[i]) / root_correction + options.eps;
    sensitivity.by_error[i] += static_cast<float>(reach / denominator);
  }
  sensitivity.at_most += 2 * rate * ratio;
}

}  // namespace lockstep
