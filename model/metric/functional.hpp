#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/expression/value.hpp"

namespace lockstep {

/// Names of torchmetrics.functional that can be called in expressions: "binary_f1_score".
std::vector<std::string> metric_function_names();
bool is_metric_function(std::string_view name);
/// The class whose formula the function has: "BinaryF1Score"; empty for other names.
std::string metric_class_of(std::string_view function);

/// Names of what it takes behind `preds` and `target`, in order: "threshold" ..
std::vector<std::string_view> metric_arguments_of(std::string_view function);

/// `binary_f1_score(preds, target, ..)`: further arguments in the order of TorchMetrics 1.9. The
/// formulas are those of the classes. Throws OperationError.
Value call_metric_function(std::string_view name, std::span<const Value> arguments);

/// TorchMetrics' _squeeze_if_scalar: a tensor of one element becomes a scalar, within lists too.
Value squeezed(const Value& value);

}  // namespace lockstep
