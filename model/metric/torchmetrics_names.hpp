#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A class or a function of TorchMetrics 1.9, modelled or not.
struct TorchMetricsName {
  std::string_view name;
  std::string_view package;  ///< "regression" of torchmetrics.regression
  std::string_view why_not;  ///< why it is not modelled; empty: it is
  std::string_view nearest;  ///< what to use instead where it is not
};

std::vector<TorchMetricsName> torchmetrics_classes();
std::vector<TorchMetricsName> torchmetrics_functions();
std::optional<TorchMetricsName> find_torchmetrics_class(std::string_view name);
std::optional<TorchMetricsName> find_torchmetrics_function(std::string_view name);

/// "`BERTScore` of torchmetrics.text: scores of text are not modelled"
std::string text_of_unsupported(const TorchMetricsName& known);
std::string remedy_of_unsupported(const TorchMetricsName& known);

}  // namespace lockstep
