#include "properties/invariants/learning_rate_scaled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lockstep {

namespace {

constexpr double tolerance = 0.01;  ///< rates are written with few digits

bool is_about(double value, double wanted) {
  return std::abs(value - wanted) <= wanted * tolerance;
}

// Why a factor is too large, and what to do.
std::pair<std::string, std::string> too_large(const LearningRateUse& use, double growth,
                                              double factor) {
  if (is_about(growth, 1)) {
    return {fmt::format("the learning rate is scaled, and the batch is not larger: under {} a step "
                        "takes {} samples on any number of devices",
                        use.strategy, use.batch_size),
            "leave the rate as it is"};
  }
  if (use.framework_scales && use.script_scales) {
    return {fmt::format("the learning rate is scaled twice: {} multiplies it by the number of "
                        "ranks, and the script does so too",
                        use.strategy),
            "leave the scaling to the strategy"};
  }
  if (growth > 1 && factor >= growth * growth * (1 - tolerance)) {
    return {"the learning rate is scaled twice", "scale it in one place"};
  }
  return {"the learning rate grew more than the batch", "scale it linearly at most"};
}

}  // namespace

std::vector<Finding> learning_rate_scaled(const LearningRateUse& use) {
  const double growth =
      static_cast<double>(use.batch_size) / static_cast<double>(use.base_batch_size);
  const double factor = use.rate / use.base_rate;
  const double least = std::min(growth, std::sqrt(growth));
  const double most = std::max(growth, std::sqrt(growth));
  if (!std::isfinite(factor) ||
      (factor >= least * (1 - tolerance) && factor <= most * (1 + tolerance))) {
    return {};
  }
  std::string title;
  std::string fix;
  if (factor > most) {
    std::tie(title, fix) = too_large(use, growth, factor);
  } else {
    title = is_about(factor, 1) ? "the learning rate is not scaled with the batch"
                                : "the learning rate grew less than the square root of the batch";
    fix = "scale it, or lower batch_size so that a step takes as many samples as before";
  }
  Finding finding = finding_of("LS309", Level::warning, std::move(title));
  finding.why.text = fmt::format(
      "{:.4g} was found for steps of {} samples, and {:.4g} is used with steps of {}: {:.4g} times "
      "the rate for {:.4g} times the batch",
      use.base_rate, use.base_batch_size, use.rate, use.batch_size, factor, growth);
  finding.follows.push_back(fmt::format("linear scaling gives {:.4g}, by the square root {:.4g}",
                                        use.base_rate * growth, use.base_rate * std::sqrt(growth)));
  finding.fix = {fix};
  return {finding};
}

}  // namespace lockstep
