#pragma once

#include <string>
#include <vector>

#include "model/expression/value.hpp"

namespace lockstep::cli {

/// A unit in which the numbers of an axis are easy to read.
struct PlotUnit {
  std::string name;   ///< "ms", "GiB"; empty: plain numbers
  double counts = 1;  ///< of the value's own count
};
/// For the largest of some values, all of one kind.
PlotUnit plot_unit(const Value& largest);

/// The count of a number or quantity.
double plot_number(const Value& value);

/// About five round numbers that span all from `least` to `most`.
std::vector<double> plot_ticks(double least, double most);
/// Powers of 2, or of 10 where these would be too many, that span all; `least` is above 0.
std::vector<double> plot_log_ticks(double least, double most);
std::string tick_text(double tick);

}  // namespace lockstep::cli
