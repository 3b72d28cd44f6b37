#pragma once

#include "model/metric/arguments.hpp"
#include "model/metric/labels.hpp"

namespace lockstep {

// Arguments that classes of torchmetrics.classification share. All throw MetricError.

inline constexpr int64_t most_classes = 100'000;

/// A whole number that must be given, within these bounds.
int64_t count_argument(MetricArguments& arguments, const char* name, int64_t least, int64_t most);
/// `num_outputs`, 1 where it is absent.
int64_t outputs_argument(MetricArguments& arguments);
/// `threshold`, 0.5 where it is absent.
float threshold_argument(MetricArguments& arguments);
/// `average`, macro where it is absent; null is none.
ClassAverage average_argument(MetricArguments& arguments, bool has_micro);
/// A number from 0 to 1 that must be given.
float fraction_argument(MetricArguments& arguments, const char* name);
/// 0 or 1.
float zero_division_argument(MetricArguments& arguments);
/// The task by the name of the class, classes or labels, and `ignore_index`. Reads `validate_args`,
/// which changes nothing here: inputs are always looked at.
Classification classification_arguments(MetricArguments& arguments);
/// Like classification_arguments, and reads `threshold`, which turns scores into labels.
Classification thresholded_arguments(MetricArguments& arguments);

}  // namespace lockstep
