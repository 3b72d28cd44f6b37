#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/stat_scores.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

Made count_metric(MetricArguments& arguments, CountFormula formula, bool one_score) {
  Classification classification = thresholded_arguments(arguments);
  if (classification.task != ClassificationTask::binary) {
    classification.average = average_argument(arguments, true);
  }
  if (classification.task == ClassificationTask::multiclass) {
    arguments.require_default("top_k", PlainValue{int64_t{1}});
  }
  arguments.require_default("multidim_average", PlainValue{std::string("global")});
  CountOptions options;
  options.formula = formula;
  if (formula == CountFormula::f_beta && !one_score) {
    const double beta = arguments.number("beta", 0);
    if (beta <= 0) {
      arguments.fail(arguments.place_of("beta"), "`beta` is a number above 0");
    }
    options.beta = static_cast<float>(beta);
  }
  options.zero_division = zero_division_argument(arguments);
  return make_count_metric(classification, options);
}

template <CountFormula formula>
Made score(MetricArguments& arguments) {
  return count_metric(arguments, formula, true);
}

constexpr auto count_entries = std::to_array<MetricClass>({
    {"Accuracy", "bml", score<CountFormula::accuracy>},
    {"Precision", "bml", score<CountFormula::precision>},
    {"Recall", "bml", score<CountFormula::recall>},
    {"Specificity", "bml", score<CountFormula::specificity>},
    {"NegativePredictiveValue", "bml", score<CountFormula::negative_predictive_value>},
    {"HammingDistance", "bml", score<CountFormula::hamming_distance>},
    {"F1Score", "bml", score<CountFormula::f_beta>},
    {"FBetaScore", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::f_beta, false); }},
    {"StatScores", "bml", score<CountFormula::counts>},
});

}  // namespace

std::span<const MetricClass> count_classes() { return count_entries; }

}  // namespace lockstep
