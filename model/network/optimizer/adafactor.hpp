#pragma once

#include <algorithm>

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/_adafactor.py. Of a matrix it keeps a mean for each row and for each column; of
/// tensors with more dimensions, of each matrix that the last two make.
struct Adafactor : OptimizerOfTorch {
  static constexpr std::string_view name = "Adafactor";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"beta2_decay", &OptimizerSettings::beta2_decay},
      {"eps", &OptimizerSettings::least_variance, &OptimizerSettings::least_scale},
      {"d", &OptimizerSettings::d},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr std::string_view further[] = {"foreach"};
  static constexpr MomentumArgument momentum = MomentumArgument::none;
  static constexpr int group_entries = 8;
  static constexpr bool is_elementwise = false;
  static constexpr int further_passes = 4;  // norms of parameter, rows, columns and update

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::adafactor, .lr = 0.01}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    if (parameter.size() < 2) {
      return states_like(parameter, 1);
    }
    const int64_t elements = elements_of(parameter);
    return {{elements / parameter.back(), 0}, {elements / parameter[parameter.size() - 2], 0}};
  }
  // The estimate, which becomes the update; of a vector the squares before it. Its foreach
  // implementation is never the default.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int negated = settings.maximize ? 1 : 0;
    return {1 + negated, 1 + negated, false};
  }

  // It squares norms of columns in place, and rows of a matrix are on several ranks.
  static std::string_view error_of_distributed(size_t dimensions) {
    return dimensions != 2 ? ""
                           : "RuntimeError: aten.pow_.Scalar: in-place operations that require "
                             "placement changes are not supported.";
  }

  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    if (settings.maximize) {
      updated.gradient.negate();
    }
    const double least =
        settings.least_variance < 0 ? updated.parameter.epsilon() : settings.least_variance;
    const auto count = static_cast<double>(updated.parameter.elements());
    const double scale =
        rate(settings, moment.step) *
        std::max(settings.least_scale, updated.parameter.norm() / std::sqrt(count));
    if (settings.weight_decay != 0) {
      updated.parameter.scale(1 - settings.lr * settings.weight_decay);
    }
    Numbers change = variance(settings, moment, updated, least);
    change.keep_above(least * least);
    change.inverse_root();
    change.multiply(updated.gradient);
    const double size = std::max(1.0, change.norm() / (std::sqrt(count) * settings.d));
    updated.parameter.add(change, -scale / size);
  }

  static double rate(const OptimizerSettings& settings, int64_t step) {
    return std::min(settings.lr, 1 / std::sqrt(static_cast<double>(step)));
  }
  static double forgotten(const OptimizerSettings& settings, int64_t step) {
    return std::pow(static_cast<double>(step), settings.beta2_decay);
  }

  template <class Numbers>
  static Numbers variance(const OptimizerSettings& settings, const UpdateMoment& moment,
                          Updated<Numbers>& updated, double least) {
    const double weight = forgotten(settings, moment.step);
    if (updated.rows == 0) {
      Numbers squares = updated.gradient.clone();
      squares.multiply(updated.gradient);
      updated.state[0].approach(squares, weight);
      return updated.state[0].clone();
    }
    const int64_t rows = updated.rows;
    const int64_t columns = updated.columns;
    updated.state[0].approach(updated.gradient.mean_squares(rows, columns, true), weight);
    updated.state[1].approach(updated.gradient.mean_squares(rows, columns, false), weight);
    return Numbers::scaled_product(updated.state[0], updated.state[1], rows, columns, least);
  }

  // Rows, columns and their mean are norms and err by d each, and so does the gradient. While d is
  // below half of each of these roots, the root of the estimate keeps a sixth of itself, and errs
  // by less than 7 times the sum of their relative errors; beyond that an element of an update of n
  // may be anything up to d sqrt(n), times a scale that grows with the parameter.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const size_t count = of.gradient.size();
    double squares = 0;
    for (const double weight : of.parameter) {
      squares += weight * weight;
    }
    const double root_count = std::sqrt(static_cast<double>(count));
    const double scale = rate(settings, moment.step) *
                         std::max(settings.least_scale, std::sqrt(squares) / root_count);
    const double least = settings.least_variance < 0 ? 0x1p-23 : settings.least_variance;
    std::vector<double> error(count);
    std::vector<double> change(count);
    std::vector<double> smallest(count);
    double errors = 0;
    double changes = 0;
    const std::vector<double> means = means_of(of);
    for (size_t i = 0; i < count; ++i) {
      const Estimate estimate = estimate_of(of, means, i, least);
      change[i] = of.gradient[i] / std::sqrt(estimate.variance);
      smallest[i] = estimate.smallest;
      error[i] = 6 * (1 / std::sqrt(estimate.variance) + 7 * std::abs(change[i]) * estimate.errors);
      errors += error[i] * error[i];
      changes += change[i] * change[i];
    }
    const double size = std::max(1.0, std::sqrt(changes) / (root_count * settings.d));
    const double of_norm = changes > 0 ? std::sqrt(errors / changes) : 0;
    const double grown =
        std::pow(1 + settings.lr * settings.d, static_cast<double>(moment.step - 1));
    const double most = 2 * scale * grown * settings.d * root_count;
    for (size_t i = 0; i < count; ++i) {
      of.add(i, std::max(2 * scale / size * (error[i] + std::abs(change[i]) * of_norm),
                         2 * most / smallest[i]));
    }
    of.sensitivity.at_most += most;
  }

 private:
  /// Of the variance of one element.
  struct Estimate {
    double variance = 0;
    double errors = 0;    ///< relative, of its roots by an error 1
    double smallest = 0;  ///< of its roots
  };
  static Estimate estimate_of(const SensitivityOfStep& of, std::span<const double> means, size_t i,
                              double least) {
    const double floor = least * least;
    if (of.rows == 0) {
      const double variance = std::max(of.state[0][i], floor);
      return {variance, 1 / std::sqrt(variance), std::sqrt(variance)};
    }
    const auto columns = static_cast<size_t>(of.columns);
    const size_t matrix = i / (static_cast<size_t>(of.rows) * columns);
    const double mean = std::max(means[matrix], least);
    const double down = std::max(of.state[0][i / columns], floor);
    const double across = std::max(of.state[1][matrix * columns + i % columns], floor);
    return {std::max(down * across / mean, floor),
            1 / std::sqrt(down) + 1 / std::sqrt(across) + 1 / std::sqrt(mean),
            std::sqrt(std::min({down, across, mean}))};
  }

  /// Of the rows of each matrix.
  static std::vector<double> means_of(const SensitivityOfStep& of) {
    const auto rows = static_cast<size_t>(of.rows);
    std::vector<double> means(rows == 0 ? 0 : of.state[0].size() / rows);
    for (size_t row = 0; row < means.size() * rows; ++row) {
      means[row / rows] += of.state[0][row] / static_cast<double>(rows);
    }
    return means;
  }
};

}  // namespace lockstep
