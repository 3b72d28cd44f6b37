#pragma once

#include <memory>

#include "model/metric/labels.hpp"

namespace lockstep {

// Metrics of one int64 state `confmat` that is summed: [true, predicted], of multilabel one a label
// (TorchMetrics functional/classification/{confusion_matrix,cohen_kappa,jaccard,
// matthews_corrcoef}.py).

/// ConfusionMatrix itself.
enum class ConfusionNormalization : uint8_t { none, by_target, by_prediction, by_all };
std::unique_ptr<const Metric> make_confusion_matrix(const Classification& classification,
                                                    ConfusionNormalization normalization);

/// CohenKappa, binary or multiclass: what a wrong class weighs.
enum class KappaWeights : uint8_t { none, linear, quadratic };
std::unique_ptr<const Metric> make_cohen_kappa(const Classification& classification,
                                               KappaWeights weights);

/// JaccardIndex by the average of `classification`.
std::unique_ptr<const Metric> make_jaccard_index(const Classification& classification,
                                                 float zero_division);

/// MatthewsCorrCoef; labels are added up.
std::unique_ptr<const Metric> make_matthews(const Classification& classification);

}  // namespace lockstep
