#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/label_sums.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

Made hinge_loss(MetricArguments& arguments) {
  const Classification classification = classification_arguments(arguments);
  HingeOptions options;
  options.squared = arguments.boolean("squared", false);
  options.one_vs_all =
      classification.task == ClassificationTask::multiclass &&
      arguments.choice("multiclass_mode", {"crammer-singer", "one-vs-all"}, 0) == 1;
  return make_hinge_loss(classification, options);
}

Made calibration_error(MetricArguments& arguments) {
  const Classification classification = classification_arguments(arguments);
  constexpr int64_t most_bins = 1'000'000;
  CalibrationOptions options;
  if (arguments.find("n_bins") != nullptr) {
    options.bins = count_argument(arguments, "n_bins", 1, most_bins);
  }
  options.norm = static_cast<CalibrationNorm>(arguments.choice("norm", {"l1", "l2", "max"}, 0));
  return make_calibration_error(classification, options);
}

Made exact_match(MetricArguments& arguments) {
  const Classification classification = thresholded_arguments(arguments);
  arguments.require_default("multidim_average", PlainValue{std::string("global")});
  return make_exact_match(classification);
}

template <RankingFormula formula>
Made ranking(MetricArguments& arguments) {
  return make_ranking(formula, classification_arguments(arguments));
}

constexpr auto label_sum_entries = std::to_array<MetricClass>({
    {"HingeLoss", "bm", hinge_loss},
    {"CalibrationError", "bm", calibration_error},
    {"ExactMatch", "ml", exact_match},
    {"CoverageError", "l", ranking<RankingFormula::coverage_error>},
    {"RankingAveragePrecision", "l", ranking<RankingFormula::average_precision>},
    {"RankingLoss", "l", ranking<RankingFormula::loss>},
});

}  // namespace

std::span<const MetricClass> label_sum_classes() { return label_sum_entries; }

}  // namespace lockstep
