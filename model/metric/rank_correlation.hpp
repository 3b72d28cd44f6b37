#pragma once

#include <memory>
#include <optional>

#include "model/metric/metric.hpp"

namespace lockstep {

// Metrics that keep all samples, in lists that are joined over the ranks.

/// SpearmanCorrCoef: the correlation of ranks, ties at their mean (functional/regression/
/// spearman.py).
std::unique_ptr<const Metric> make_spearman(int64_t outputs);

/// KendallRankCorrCoef; with a test its value is a list of tau and the p-value (functional/
/// regression/kendall.py).
enum class KendallVariant : uint8_t { a, b, c };
enum class TestAlternative : uint8_t { two_sided, less, greater };
std::unique_ptr<const Metric> make_kendall(KendallVariant variant,
                                           std::optional<TestAlternative> test, int64_t outputs);

/// CosineSimilarity of rows (functional/regression/cosine_similarity.py).
enum class SimilarityReduction : uint8_t { sum, mean, each };
std::unique_ptr<const Metric> make_cosine_similarity(SimilarityReduction reduction);

/// CriticalSuccessIndex: hits by hits, misses and false alarms. Along a kept dimension the counts
/// are lists of int32 (functional/regression/csi.py).
std::unique_ptr<const Metric> make_critical_success(float threshold,
                                                    std::optional<int64_t> kept_dimension);

}  // namespace lockstep
