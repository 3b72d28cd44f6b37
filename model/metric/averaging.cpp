#include "model/metric/averaging.hpp"

#include <fmt/format.h>

namespace lockstep {

std::optional<Averaging> averaging_of(std::string_view class_name, bool is_micro) {
  const bool one_score = class_name.starts_with("Binary") || is_micro;
  // With one label out of several, each wrong one is a false positive and a false negative: micro
  // precision, recall and F are the accuracy.
  const bool is_accuracy = is_micro && class_name.starts_with("Multiclass") &&
                           (class_name.ends_with("Precision") || class_name.ends_with("Recall") ||
                            class_name.ends_with("F1Score") || class_name.ends_with("FBetaScore"));
  if (is_accuracy && !class_name.ends_with("AveragePrecision")) {
    return Averaging::equal_counts;
  }
  if (class_name.ends_with("Accuracy")) {
    return one_score ? Averaging::equal_counts : Averaging::never;
  }
  if (class_name.ends_with("Precision") && !class_name.ends_with("AveragePrecision")) {
    return one_score ? Averaging::equal_predicted_positives : Averaging::never;
  }
  if (class_name.ends_with("Recall")) {
    return one_score ? Averaging::equal_positives : Averaging::never;
  }
  if (class_name.ends_with("Specificity")) {
    return one_score ? Averaging::equal_negatives : Averaging::never;
  }
  if (class_name == "MeanSquaredError" || class_name == "MeanAbsoluteError" ||
      class_name == "MeanMetric") {
    return Averaging::equal_counts;
  }
  if (class_name == "RootMeanSquaredError" || class_name == "Perplexity" || class_name == "exp" ||
      class_name == "log") {
    return Averaging::never_by_mean;
  }
  if (class_name == "RetrievalMAP") {
    return Averaging::equal_queries;
  }
  for (const std::string_view ending :
       {"F1Score", "FBetaScore", "AUROC", "AveragePrecision", "R2Score", "PearsonCorrCoef"}) {
    if (class_name.ends_with(ending)) {
      return Averaging::never;
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
