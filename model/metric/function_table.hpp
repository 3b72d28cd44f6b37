#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// A function of torchmetrics.functional with the class whose formula it has.
struct MetricFunction {
  std::string_view name;        ///< "binary_f1_score"
  std::string_view class_name;  ///< "BinaryF1Score"
  std::string_view arguments;   ///< behind `preds` and `target`, in order; `name=text` where the
                                ///< function has a default that the class has not
};
std::span<const MetricFunction> metric_functions();

}  // namespace lockstep
