#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/network/optimizer/update_kernel.hpp"

namespace lockstep {

/// Norms of a tensor of which each rank holds a part, in the order in which an update asks for
/// them.
struct SharedNorms {
  std::vector<double> known;  ///< those that the ranks have added up
  size_t asked = 0;
  double own = 0;  ///< of this rank's part: the first that is not among them
};

/// The tensors of one update, in the numbers of one world. The gradient may be changed.
template <class Numbers>
struct Updated {
  Numbers& parameter;
  Numbers& gradient;
  std::span<Numbers> state;
  int64_t rows = 0;  ///< of each matrix in the parameter; 0: it is a vector
  int64_t columns = 1;
  SharedNorms* shared = nullptr;  ///< null: this is the whole tensor, or is taken for it

  double norm(const Numbers& of) const {
    if (shared == nullptr) {
      return of.norm();
    }
    const size_t index = shared->asked++;
    if (index < shared->known.size()) {
      return shared->known[index];
    }
    shared->own = index == shared->known.size() ? of.norm() : shared->own;
    return shared->own;
  }
};

/// What an update has divided by, and how far that could have gone: of the reference alone, where
/// the numbers of a gradient may carry rounding (UpdateSensitivity).
struct SensitivityOfStep {
  const std::vector<double>& gradient;         ///< with its decay
  const std::vector<double>& parameter;        ///< before the step
  std::span<const std::vector<double>> state;  ///< after the step
  UpdateSensitivity& sensitivity;
  int64_t rows = 0;
  int64_t columns = 1;

  void set(size_t element, double distance) const {
    sensitivity.by_error[element] = static_cast<float>(std::min(distance, beyond_any_step));
  }
  void add(size_t element, double distance) const {
    set(element, static_cast<double>(sensitivity.by_error[element]) + distance);
  }
  static constexpr double beyond_any_step = 1e30;  ///< times an error of 0 it is still a number
};

/// What most optimizers of torch have.
struct OptimizerOfTorch {
  static constexpr std::string_view further[] = {"foreach", "capturable", "differentiable"};
  static constexpr int counters = 1;
  static constexpr bool is_elementwise = true;
  static constexpr int further_passes = 0;
  static constexpr bool has_sensitivity = true;

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 0; }
  static std::string_view error_of_distributed(size_t /*dimensions*/) { return {}; }
  static std::array<double, 2> advance(const OptimizerSettings& /*settings*/, int64_t /*step*/,
                                       std::array<double, 2>& /*kept*/) {
    return {};
  }
};

/// torch's first lines: the gradient's sign, and weight decay.
template <class Numbers>
void decay(const OptimizerSettings& settings, Updated<Numbers>& updated) {
  if (settings.maximize) {
    updated.gradient.negate();
  }
  if (settings.weight_decay != 0 && settings.decoupled_weight_decay) {
    updated.parameter.scale(1 - settings.lr * settings.weight_decay);
  } else if (settings.weight_decay != 0) {
    updated.gradient.add(updated.parameter, settings.weight_decay);
  }
}

inline double correction(double beta, int64_t step) {
  return 1 - std::pow(beta, static_cast<double>(step));
}

inline bool adds_decay(const OptimizerSettings& settings) {
  return settings.weight_decay != 0 && !settings.decoupled_weight_decay;
}

inline std::vector<OptimizerState> states_like(const Shape& parameter, int count) {
  return std::vector<OptimizerState>(static_cast<size_t>(count), {elements_of(parameter), 0});
}

}  // namespace lockstep
