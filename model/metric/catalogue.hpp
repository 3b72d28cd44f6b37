#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric/arguments.hpp"
#include "model/metric/metric.hpp"

namespace lockstep {

/// A class of TorchMetrics that is modelled, or one for each task.
struct MetricClass {
  std::string_view suffix;  ///< behind Binary, Multiclass or Multilabel where `tasks` says so
  std::string_view tasks;   ///< "bml": of these tasks; "": the whole name
  /// Throws MetricError for arguments that the class refuses.
  std::shared_ptr<const Metric> (*make)(MetricArguments&);
};

/// {"BinaryROC", "MulticlassROC", ..}
std::vector<std::string> names_of(const MetricClass& entry);

// By family of formulas.
std::span<const MetricClass> count_classes();
std::span<const MetricClass> matrix_classes();
std::span<const MetricClass> label_sum_classes();
std::span<const MetricClass> curve_classes();
std::span<const MetricClass> regression_classes();
std::span<const MetricClass> retrieval_classes();
std::span<const MetricClass> aggregation_classes();

}  // namespace lockstep
