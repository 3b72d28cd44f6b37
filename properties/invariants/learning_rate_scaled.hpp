#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/finding.hpp"

namespace lockstep {

/// A learning rate, and the batches that it was found for and is used with.
struct LearningRateUse {
  double base_rate = 0;
  int64_t base_batch_size = 1;    ///< samples of an optimizer step, when the rate was found
  double rate = 0;                ///< that the run steps with
  int64_t batch_size = 1;         ///< samples of an optimizer step of the run
  bool framework_scales = false;  ///< the strategy multiplies by the number of ranks itself
  bool script_scales = false;
  std::string strategy{};
};

/// The rate grew with the batch: by no less than its square root and no more than linearly
/// (Krizhevsky 2014; Goyal and others 2017), LS309. At most one finding, a warning.
std::vector<Finding> learning_rate_scaled(const LearningRateUse& use);

}  // namespace lockstep
