#pragma once

#include <algorithm>

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// Lamb of the package torch-optimizer (You et al. 2020). The step of each tensor is as long as its
/// own norm says.
struct Lamb : OptimizerOfTorch {
  static constexpr std::string_view name = "Lamb";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"clamp_value", &OptimizerSettings::clamp_value},
      {"debias", nullptr, nullptr, &OptimizerSettings::debias}};
  static constexpr std::string_view further[] = {"adam"};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int counters = 0;  // a plain number
  static constexpr int group_entries = 5;
  static constexpr bool is_elementwise = false;
  static constexpr int further_passes = 2;  // both norms

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::lamb, .lr = 1e-3, .eps = 1e-6};
  }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  // The root, its sum with eps, and the quotient.
  static UpdateTemporaries temporaries(const OptimizerSettings& /*settings*/) {
    return {3, 3, false};
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 3; }
  static double rate(const OptimizerSettings& settings, int64_t step) {
    return settings.debias ? settings.lr * std::sqrt(correction(settings.beta2, step)) /
                                 correction(settings.beta1, step)
                           : settings.lr;
  }
  static double trust(double weights, double change) {
    return weights == 0 || change == 0 ? 1 : weights / change;
  }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    updated.state[0].scale(settings.beta1);
    updated.state[0].add(updated.gradient, 1 - settings.beta1);
    updated.state[1].scale(settings.beta2);
    updated.state[1].add_product(updated.gradient, updated.gradient, 1 - settings.beta2);
    const double weights = std::clamp(updated.norm(updated.parameter), 0.0, settings.clamp_value);
    Numbers root = updated.state[1].clone();
    root.root();
    root.raise(settings.eps);
    Numbers change = updated.state[0].clone();
    change.divide(root);
    if (settings.weight_decay != 0) {
      change.add(updated.parameter, settings.weight_decay);
    }
    updated.parameter.add(change,
                          -rate(settings, moment.step) * trust(weights, updated.norm(change)));
  }

  // Before it is scaled a change errs as Adam's without corrections: m and the root by d each,
  // their quotient c at most. Its norm errs by the norm of that.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double most = 1 / std::sqrt(1 - settings.beta2);
    double weights = 0;
    double changes = 0;
    double errors = 0;
    std::vector<double> change(of.gradient.size());
    std::vector<double> error(of.gradient.size());
    for (size_t i = 0; i < change.size(); ++i) {
      const double root = std::sqrt(of.state[1][i]) + settings.eps;
      change[i] = of.state[0][i] / root + settings.weight_decay * of.parameter[i];
      error[i] = (1 + most) / root;
      weights += of.parameter[i] * of.parameter[i];
      changes += change[i] * change[i];
      errors += error[i] * error[i];
    }
    const double norm = std::min(std::sqrt(weights), settings.clamp_value);
    const double scale = rate(settings, moment.step) * trust(norm, std::sqrt(changes));
    const double of_norm = changes > 0 ? std::sqrt(errors / changes) : 0;
    for (size_t i = 0; i < change.size(); ++i) {
      of.add(i, 2 * scale * (error[i] + std::abs(change[i]) * of_norm));
    }
    of.sensitivity.at_most += 2 * rate(settings, moment.step) *
                              std::max(norm, scale * most / rate(settings, moment.step));
  }
};

}  // namespace lockstep
