#include "rehearsal/findings/missing_values.hpp"

#include <fmt/format.h>

namespace lockstep::cli {

std::string missing_values(const OneRun& run) {
  const Preparation& preparation = run.preparation;
  if (preparation.network == nullptr || preparation.options.numerics) {
    return "";
  }
  return fmt::format(
      "values of parameters, gradients and losses: {}; not judged: the numbers that "
      "LS305 and LS306 compare, and logged losses",
      preparation.why_without_values);
}

}  // namespace lockstep::cli
