#include <array>

#include "io/scenario/classes/catalogue_tables.hpp"

// Constructors of TorchMetrics 1.9. Behind a class's own arguments stand those of every metric.

namespace lockstep {
namespace {

#define LOCKSTEP_METRIC                                               \
  " dist_sync_on_step:bool sync_on_compute:bool compute_on_cpu:bool " \
  "compute_with_cache:bool"

constexpr auto metrics = std::to_array<ClassRow>({
    {"AUROC",
     "task:text thresholds num_classes:int num_labels:int average max_fpr:float ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"Accuracy",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"AveragePrecision",
     "task:text thresholds num_classes:int num_labels:int average ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"CalibrationError",
     "task:text n_bins:int norm:text num_classes:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"CohenKappa",
     "task:text threshold:float num_classes:int weights:text ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"ConfusionMatrix",
     "task:text threshold:float num_classes:int num_labels:int normalize:text ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"EER",
     "task:text thresholds num_classes:int num_labels:int average ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"ExactMatch",
     "task:text threshold:float num_classes:int num_labels:int multidim_average:text "
     "ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"F1Score",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"FBetaScore",
     "task:text beta:float threshold:float num_classes:int num_labels:int average "
     "multidim_average:text top_k:int ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"HammingDistance",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"HingeLoss",
     "task:text num_classes:int squared:bool multiclass_mode:text ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"JaccardIndex",
     "task:text threshold:float num_classes:int num_labels:int average ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"LogAUC",
     "task:text thresholds fpr_range:list num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool average" LOCKSTEP_METRIC},
    {"MatthewsCorrCoef",
     "task:text threshold:float num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"NegativePredictiveValue",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"Precision",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"PrecisionAtFixedRecall",
     "task:text min_recall:float thresholds num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"PrecisionRecallCurve",
     "task:text thresholds num_classes:int num_labels:int ignore_index:int validate_args:bool "
     "average" LOCKSTEP_METRIC},
    {"ROC",
     "task:text thresholds num_classes:int num_labels:int ignore_index:int validate_args:bool "
     "average" LOCKSTEP_METRIC},
    {"Recall",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"RecallAtFixedPrecision",
     "task:text min_precision:float thresholds num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"SensitivityAtSpecificity",
     "task:text min_specificity:float thresholds num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"Specificity",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"SpecificityAtSensitivity",
     "task:text min_sensitivity:float thresholds num_classes:int num_labels:int ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"StatScores",
     "task:text threshold:float num_classes:int num_labels:int average multidim_average:text "
     "top_k:int ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"BinaryAUROC", "max_fpr:float thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryAccuracy",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryAveragePrecision",
     "thresholds ignore_index:int validate_args:bool normalization:text" LOCKSTEP_METRIC},
    {"BinaryCalibrationError",
     "n_bins:int norm:text ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryCohenKappa",
     "threshold:float ignore_index:int weights:text validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryConfusionMatrix",
     "threshold:float ignore_index:int normalize:text validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryEER",
     "thresholds ignore_index:int validate_args:bool normalization:text" LOCKSTEP_METRIC},
    {"BinaryF1Score",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryFBetaScore",
     "beta:float threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryHammingDistance",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryHingeLoss", "squared:bool ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryJaccardIndex",
     "threshold:float ignore_index:int validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"BinaryLogAUC",
     "fpr_range:list thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryMatthewsCorrCoef",
     "threshold:float ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryNegativePredictiveValue",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryPrecision",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryPrecisionAtFixedRecall",
     "min_recall:float thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryPrecisionRecallCurve",
     "thresholds ignore_index:int validate_args:bool normalization:text" LOCKSTEP_METRIC},
    {"BinaryROC",
     "thresholds ignore_index:int validate_args:bool normalization:text" LOCKSTEP_METRIC},
    {"BinaryRecall",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinaryRecallAtFixedPrecision",
     "min_precision:float thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinarySensitivityAtSpecificity",
     "min_specificity:float thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinarySpecificity",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"BinarySpecificityAtSensitivity",
     "min_sensitivity:float thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"BinaryStatScores",
     "threshold:float multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassAUROC",
     "num_classes:int average thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassAccuracy",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassAveragePrecision",
     "num_classes:int average thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassCalibrationError",
     "num_classes:int n_bins:int norm:text ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassCohenKappa",
     "num_classes:int ignore_index:int weights:text validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassConfusionMatrix",
     "num_classes:int ignore_index:int normalize:text validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassEER",
     "num_classes:int thresholds average ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassExactMatch",
     "num_classes:int multidim_average:text ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassF1Score",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassFBetaScore",
     "beta:float num_classes:int top_k:int average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassHammingDistance",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassHingeLoss",
     "num_classes:int squared:bool multiclass_mode:text ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassJaccardIndex",
     "num_classes:int average ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassLogAUC",
     "num_classes:int fpr_range:list average thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassMatthewsCorrCoef",
     "num_classes:int ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassNegativePredictiveValue",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassPrecision",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassPrecisionAtFixedRecall",
     "num_classes:int min_recall:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassPrecisionRecallCurve",
     "num_classes:int thresholds average ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassROC",
     "num_classes:int thresholds average ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassRecall",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassRecallAtFixedPrecision",
     "num_classes:int min_precision:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassSensitivityAtSpecificity",
     "num_classes:int min_specificity:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassSpecificity",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MulticlassSpecificityAtSensitivity",
     "num_classes:int min_sensitivity:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MulticlassStatScores",
     "num_classes:int top_k:int average multidim_average:text ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelAUROC",
     "num_labels:int average thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelAccuracy",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelAveragePrecision",
     "num_labels:int average thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelConfusionMatrix",
     "num_labels:int threshold:float ignore_index:int normalize:text "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelCoverageError",
     "num_labels:int ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelEER",
     "num_labels:int thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelExactMatch",
     "num_labels:int threshold:float multidim_average:text ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelF1Score",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelFBetaScore",
     "beta:float num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelHammingDistance",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelJaccardIndex",
     "num_labels:int threshold:float average ignore_index:int validate_args:bool "
     "zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelLogAUC",
     "num_labels:int fpr_range:list average thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelMatthewsCorrCoef",
     "num_labels:int threshold:float ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelNegativePredictiveValue",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelPrecision",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelPrecisionAtFixedRecall",
     "num_labels:int min_recall:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelPrecisionRecallCurve",
     "num_labels:int thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelROC",
     "num_labels:int thresholds ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelRankingAveragePrecision",
     "num_labels:int ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelRankingLoss", "num_labels:int ignore_index:int validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelRecall",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelRecallAtFixedPrecision",
     "num_labels:int min_precision:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelSensitivityAtSpecificity",
     "num_labels:int min_specificity:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelSpecificity",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"MultilabelSpecificityAtSensitivity",
     "num_labels:int min_sensitivity:float thresholds ignore_index:int "
     "validate_args:bool" LOCKSTEP_METRIC},
    {"MultilabelStatScores",
     "num_labels:int threshold:float average multidim_average:text ignore_index:int "
     "validate_args:bool zero_division:float" LOCKSTEP_METRIC},
    {"ConcordanceCorrCoef", "num_outputs:int" LOCKSTEP_METRIC},
    {"ContinuousRankedProbabilityScore", LOCKSTEP_METRIC},
    {"CosineSimilarity", "reduction:text" LOCKSTEP_METRIC},
    {"CriticalSuccessIndex", "threshold:float keep_sequence_dim:int" LOCKSTEP_METRIC},
    {"ExplainedVariance", "multioutput:text" LOCKSTEP_METRIC},
    {"JensenShannonDivergence", "log_prob:bool reduction:text" LOCKSTEP_METRIC},
    {"KLDivergence", "log_prob:bool reduction:text" LOCKSTEP_METRIC},
    {"KendallRankCorrCoef",
     "variant:text t_test:bool alternative:text num_outputs:int" LOCKSTEP_METRIC},
    {"LogCoshError", "num_outputs:int" LOCKSTEP_METRIC},
    {"MeanAbsoluteError", "num_outputs:int" LOCKSTEP_METRIC},
    {"MeanAbsolutePercentageError", LOCKSTEP_METRIC},
    {"MeanSquaredError", "squared:bool num_outputs:int" LOCKSTEP_METRIC},
    {"MeanSquaredLogError", LOCKSTEP_METRIC},
    {"MinkowskiDistance", "p:float" LOCKSTEP_METRIC},
    {"NormalizedRootMeanSquaredError", "normalization:text num_outputs:int" LOCKSTEP_METRIC},
    {"PearsonCorrCoef", "num_outputs:int" LOCKSTEP_METRIC},
    {"R2Score", "adjusted:int multioutput:text" LOCKSTEP_METRIC},
    {"RelativeSquaredError", "num_outputs:int squared:bool" LOCKSTEP_METRIC},
    {"SpearmanCorrCoef", "num_outputs:int" LOCKSTEP_METRIC},
    {"SymmetricMeanAbsolutePercentageError", LOCKSTEP_METRIC},
    {"TweedieDevianceScore", "power:float" LOCKSTEP_METRIC},
    {"WeightedMeanAbsolutePercentageError", LOCKSTEP_METRIC},
    {"CatMetric", "nan_strategy" LOCKSTEP_METRIC},
    {"MaxMetric", "nan_strategy" LOCKSTEP_METRIC},
    {"MeanMetric", "nan_strategy" LOCKSTEP_METRIC},
    {"MinMetric", "nan_strategy" LOCKSTEP_METRIC},
    {"RunningMean", "window:int nan_strategy" LOCKSTEP_METRIC},
    {"RunningSum", "window:int nan_strategy" LOCKSTEP_METRIC},
    {"SumMetric", "nan_strategy" LOCKSTEP_METRIC},
    {"RetrievalAUROC",
     "empty_target_action:text ignore_index:int top_k:int max_fpr:float "
     "aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalFallOut",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalHitRate",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalMAP",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalMRR",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalNormalizedDCG",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalPrecision",
     "empty_target_action:text ignore_index:int top_k:int adaptive_k:bool "
     "aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalPrecisionRecallCurve",
     "max_k:int adaptive_k:bool empty_target_action:text ignore_index:int "
     "aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalRPrecision",
     "empty_target_action:text ignore_index:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalRecall",
     "empty_target_action:text ignore_index:int top_k:int aggregation:text" LOCKSTEP_METRIC},
    {"RetrievalRecallAtFixedPrecision",
     "min_precision:float max_k:int adaptive_k:bool empty_target_action:text "
     "ignore_index:int" LOCKSTEP_METRIC},
    {"Perplexity", "ignore_index:int" LOCKSTEP_METRIC},
    {"MetricCollection", "metrics:each prefix:text postfix:text compute_groups:bool"},
});

#undef LOCKSTEP_METRIC

}  // namespace

std::span<const ClassRow> metric_classes() { return metrics; }

}  // namespace lockstep
