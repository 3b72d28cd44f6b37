#include "model/metric/averaging.hpp"

#include <fmt/format.h>

#include <array>

namespace lockstep {

namespace {

struct AveragingOf {
  std::string_view ending;  ///< of the class's name
  Averaging averaging;
};

// Scores of which each sample or each positive counts alike, of two classes or micro.
constexpr auto averaged_scores = std::to_array<AveragingOf>({
    {"AveragePrecision", Averaging::never},
    {"Accuracy", Averaging::equal_counts},
    {"HammingDistance", Averaging::equal_counts},
    {"Precision", Averaging::equal_predicted_positives},
    {"Recall", Averaging::equal_positives},
    {"Specificity", Averaging::equal_negatives},
    {"NegativePredictiveValue", Averaging::equal_predicted_negatives},
});

constexpr auto others = std::to_array<AveragingOf>({
    {"RootMeanSquaredError", Averaging::never_by_mean},  // also the normalized one
    {"MeanSquaredError", Averaging::equal_counts},
    {"MeanSquaredLogError", Averaging::equal_counts},
    {"MeanAbsoluteError", Averaging::equal_counts},
    {"WeightedMeanAbsolutePercentageError", Averaging::equal_targets},
    {"MeanAbsolutePercentageError", Averaging::equal_counts},  // also the symmetric one
    {"LogCoshError", Averaging::equal_counts},
    {"TweedieDevianceScore", Averaging::equal_counts},
    {"ContinuousRankedProbabilityScore", Averaging::equal_counts},
    {"KLDivergence", Averaging::equal_counts},
    {"JensenShannonDivergence", Averaging::equal_counts},
    {"HingeLoss", Averaging::equal_counts},
    {"ExactMatch", Averaging::equal_counts},
    {"CoverageError", Averaging::equal_counts},
    {"RankingAveragePrecision", Averaging::equal_counts},
    {"RankingLoss", Averaging::equal_counts},
    {"MeanMetric", Averaging::equal_counts},
    {"RunningMean", Averaging::equal_counts},
    {"Perplexity", Averaging::never_by_mean},
    {"exp", Averaging::never_by_mean},
    {"log", Averaging::never_by_mean},
    {"MinkowskiDistance", Averaging::never},
    {"F1Score", Averaging::never},
    {"FBetaScore", Averaging::never},
    {"AUROC", Averaging::never},
    {"LogAUC", Averaging::never},
    {"EER", Averaging::never},
    {"CohenKappa", Averaging::never},
    {"JaccardIndex", Averaging::never},
    {"MatthewsCorrCoef", Averaging::never},
    {"CalibrationError", Averaging::never},
    {"R2Score", Averaging::never},
    {"RelativeSquaredError", Averaging::never},
    {"ExplainedVariance", Averaging::never},
    {"CorrCoef", Averaging::never},
    {"CosineSimilarity", Averaging::never},  // a sum, where nothing else is asked for
    {"CriticalSuccessIndex", Averaging::never},
});

}  // namespace

std::optional<Averaging> averaging_of(std::string_view class_name, bool is_micro) {
  // Of one label out of several, each wrong one is a false positive and a false negative: micro
  // precision, recall and F are the accuracy, and all samples have equally many negatives.
  const bool of_classes = is_micro && class_name.starts_with("Multiclass");
  for (const std::string_view ending :
       {"AtFixedPrecision", "AtFixedRecall", "AtSpecificity", "AtSensitivity", "Curve"}) {
    if (class_name.ends_with(ending)) {
      return std::nullopt;  // a list
    }
  }
  if (class_name.ends_with("ROC") && !class_name.ends_with("AUROC")) {
    return std::nullopt;
  }
  if (class_name.starts_with("Retrieval")) {
    return Averaging::equal_queries;
  }
  for (const AveragingOf& row : others) {
    const bool is_f = row.ending == "F1Score" || row.ending == "FBetaScore";
    if (class_name.ends_with(row.ending)) {
      return of_classes && is_f ? Averaging::equal_counts : row.averaging;
    }
  }
  for (const AveragingOf& row : averaged_scores) {
    if (class_name.ends_with(row.ending)) {
      if (row.averaging == Averaging::never || of_classes) {
        return row.averaging == Averaging::never ? Averaging::never : Averaging::equal_counts;
      }
      return class_name.starts_with("Binary") || is_micro ? row.averaging : Averaging::never;
    }
  }
  return std::nullopt;
}

std::string text_of(Averaging averaging, std::string_view metric) {
  switch (averaging) {
    case Averaging::equal_counts:
      return fmt::format(
          "{} is the mean of its parts only if each is weighted by its number of samples", metric);
    case Averaging::equal_predicted_positives:
      return fmt::format("{} is the mean of its parts only if all predict equally many positives",
                         metric);
    case Averaging::equal_positives:
      return fmt::format("{} is the mean of its parts only if all hold equally many positives",
                         metric);
    case Averaging::equal_negatives:
      return fmt::format("{} is the mean of its parts only if all hold equally many negatives",
                         metric);
    case Averaging::equal_predicted_negatives:
      return fmt::format("{} is the mean of its parts only if all predict equally many negatives",
                         metric);
    case Averaging::equal_targets:
      return fmt::format("{} is the mean of its parts only if all targets have equal sums", metric);
    case Averaging::equal_queries:
      return fmt::format(
          "{} is the mean of its parts only if all hold equally many queries, "
          "and no query is in two of them",
          metric);
    case Averaging::never_by_mean:
      return fmt::format("{} is not the mean of its parts, not even of equal ones", metric);
    case Averaging::never: return fmt::format("{} is never the mean of its parts", metric);
  }
  return "";
}

}  // namespace lockstep
