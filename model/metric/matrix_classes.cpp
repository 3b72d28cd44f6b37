#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/confusion_matrix.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

void check_size(MetricArguments& arguments, const Classification& classification) {
  if (classification.task == ClassificationTask::multiclass &&
      classification.classes * classification.classes > int64_t{1} << 26) {
    arguments.fail(arguments.place_of("num_classes"), "the matrix has more than 2^26 entries");
  }
}

Made confusion_matrix(MetricArguments& arguments) {
  const Classification classification = thresholded_arguments(arguments);
  check_size(arguments, classification);
  const size_t by = arguments.choice("normalize", {"none", "true", "pred", "all"}, 0);
  return make_confusion_matrix(classification, static_cast<ConfusionNormalization>(by));
}

Made cohen_kappa(MetricArguments& arguments) {
  const Classification classification = thresholded_arguments(arguments);
  check_size(arguments, classification);
  const size_t weights = arguments.choice("weights", {"none", "linear", "quadratic"}, 0);
  return make_cohen_kappa(classification, static_cast<KappaWeights>(weights));
}

Made jaccard_index(MetricArguments& arguments) {
  Classification classification = thresholded_arguments(arguments);
  check_size(arguments, classification);
  if (classification.task != ClassificationTask::binary) {
    classification.average = average_argument(arguments, true);
  }
  return make_jaccard_index(classification,
                            static_cast<float>(arguments.number("zero_division", 0)));
}

Made matthews(MetricArguments& arguments) {
  const Classification classification = thresholded_arguments(arguments);
  check_size(arguments, classification);
  return make_matthews(classification);
}

constexpr auto matrix_entries = std::to_array<MetricClass>({
    {"ConfusionMatrix", "bml", confusion_matrix},
    {"CohenKappa", "bm", cohen_kappa},
    {"JaccardIndex", "bml", jaccard_index},
    {"MatthewsCorrCoef", "bml", matthews},
});

}  // namespace

std::span<const MetricClass> matrix_classes() { return matrix_entries; }

}  // namespace lockstep
