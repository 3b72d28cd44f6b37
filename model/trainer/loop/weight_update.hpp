#pragma once

#include <cstdint>
#include <string>

#include "model/core/site.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"

namespace lockstep {

/// Optimizer steps in a row that do the same to equal weights and equal gradients, on one rank.
struct WeightUpdate {
  std::string optimizer;  ///< its name; empty where it has none
  double learning_rate = 0;
  GradientClipping clipping{};
  bool has_gradients = false;  ///< a backward has filled them since they were set to None or 0
  SiteId site{};               ///< of the step; no_site: Lightning's own
  SiteId clipping_site{};      ///< of the statement that clips
  int64_t times = 1;
  /// Training batches from the update before it to this one, of each in the row.
  int64_t batches = 0;
  /// No step: all ranks have taken over the model of one of them, whatever they did before.
  bool takes_over = false;

  bool operator==(const WeightUpdate&) const = default;
  bool does_as(const WeightUpdate& other) const {
    return takes_over == other.takes_over && optimizer == other.optimizer &&
           learning_rate == other.learning_rate && clipping.algorithm == other.clipping.algorithm &&
           clipping.limit == other.clipping.limit && has_gradients == other.has_gradients;
  }
};

}  // namespace lockstep
