#pragma once

#include <algorithm>

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/asgd.py. It is linear in the gradients.
struct Asgd : OptimizerOfTorch {
  static constexpr std::string_view name = "ASGD";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"lambd", &OptimizerSettings::lambd},
      {"alpha", &OptimizerSettings::alpha},
      {"t0", &OptimizerSettings::t0},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::none;
  static constexpr int counters = 3;  // step, eta, mu
  static constexpr int group_entries = 10;
  static constexpr bool has_sensitivity = false;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::asgd, .lr = 0.01}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 1);
  }
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int changed = adds_decay(settings) || settings.maximize ? 1 : 0;
    return {1 + (settings.maximize ? 1 : 0), std::max(1, changed)};
  }

  // eta and mu are tensors of fp32, which a step uses and then sets for the next.
  static std::array<double, 2> advance(const OptimizerSettings& settings, int64_t step,
                                       std::array<double, 2>& kept) {
    const auto narrow = [](double number) {
      return static_cast<double>(static_cast<float>(number));
    };
    const std::array<double, 2> now =
        step == 1 ? std::array<double, 2>{narrow(settings.lr), 1.0} : kept;
    const auto t = static_cast<double>(step);
    kept = {narrow(settings.lr / std::pow(1 + settings.lambd * settings.lr * t, settings.alpha)),
            narrow(1 / std::max(1.0, t - settings.t0))};
    return now;
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 1; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    const auto [eta, mu] = moment.numbers;
    decay(settings, updated);
    updated.parameter.scale(1 - settings.lambd * eta);
    updated.parameter.add(updated.gradient, -eta);
    Numbers& average = updated.state[0];
    if (mu == 1) {
      average.copy(updated.parameter);
      return;
    }
    Numbers way = updated.parameter.clone();
    way.add(average, -1);
    way.scale(mu);
    average.add(way);
  }
};

}  // namespace lockstep
