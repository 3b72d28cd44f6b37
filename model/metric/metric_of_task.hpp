#pragma once

#include "model/scenario/object.hpp"

namespace lockstep {

/// `Accuracy(task="multiclass", num_classes=3)` as the class that TorchMetrics' `__new__` makes of
/// it: MulticlassAccuracy, with the arguments that it takes; others are dropped without a word, as
/// there. Scores that count have `average="micro"`, unlike the class itself. Any other object is
/// given back as it is. Throws MetricError where `task` is missing or none.
Object metric_of_task(const Object& object);

}  // namespace lockstep
