#include <fmt/format.h>

#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/error_sums.hpp"
#include "model/metric/rank_correlation.hpp"
#include "model/metric/regression.hpp"
#include "model/metric/variance_scores.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

Made mean_error(MetricArguments& arguments, bool absolute) {
  const bool squared = absolute || arguments.boolean("squared", true);
  const int64_t outputs = outputs_argument(arguments);
  return make_mean_error(absolute  ? ErrorFormula::absolute
                         : squared ? ErrorFormula::squared
                                   : ErrorFormula::root_of_squared,
                         outputs);
}

OutputAverage output_average(MetricArguments& arguments) {
  return static_cast<OutputAverage>(
      arguments.choice("multioutput", {"raw_values", "uniform_average", "variance_weighted"}, 1));
}

Made r2_score(MetricArguments& arguments) {
  const int64_t adjusted = arguments.integer("adjusted", 0);
  if (adjusted < 0) {
    arguments.fail(arguments.place_of("adjusted"), "`adjusted` is at least 0");
  }
  return make_r2_score(adjusted, output_average(arguments));
}

Made minkowski(MetricArguments& arguments) {
  if (arguments.find("p") == nullptr) {
    arguments.fail(arguments.object().place, "`p` is missing", "write {MinkowskiDistance: {p: 3}}");
  }
  const double p = arguments.number("p", 2);
  if (p < 1) {
    arguments.fail(arguments.place_of("p"), fmt::format("`p` is {}", p), "give at least 1");
  }
  return make_error_sum(ErrorSumFormula::minkowski, static_cast<float>(p));
}

Made tweedie(MetricArguments& arguments) {
  const double power = arguments.number("power", 0);
  if (power > 0 && power < 1) {
    arguments.fail(arguments.place_of("power"),
                   fmt::format("no deviance is defined for `power: {}`", power),
                   "give 0 or less, or at least 1");
  }
  return make_error_sum(ErrorSumFormula::tweedie, static_cast<float>(power));
}

// `null` is `none`, which `find` does not tell from an absent argument.
size_t reduction_argument(MetricArguments& arguments, size_t otherwise) {
  const PlainValue* given = arguments.object().find("reduction");
  if (given != nullptr && given->is_null()) {
    arguments.find("reduction");
    return 2;
  }
  return arguments.choice("reduction", {"mean", "sum", "none"}, otherwise);
}

Made divergence(MetricArguments& arguments, DivergenceFormula formula) {
  const bool logarithms = arguments.boolean("log_prob", false);
  return make_divergence(formula, logarithms,
                         static_cast<DivergenceReduction>(reduction_argument(arguments, 0)));
}

Made cosine_similarity(MetricArguments& arguments) {
  constexpr std::array<SimilarityReduction, 3> reductions = {
      SimilarityReduction::mean, SimilarityReduction::sum, SimilarityReduction::each};
  return make_cosine_similarity(reductions[reduction_argument(arguments, 1)]);
}

Made kendall(MetricArguments& arguments) {
  const auto variant = static_cast<KendallVariant>(arguments.choice("variant", {"a", "b", "c"}, 1));
  const bool tests = arguments.boolean("t_test", false);
  const PlainValue* alternative = arguments.object().find("alternative");
  if (tests && alternative != nullptr && alternative->is_null()) {
    arguments.fail(alternative->place, "`t_test` needs an `alternative`",
                   "give two-sided, less or greater");
  }
  const auto side = static_cast<TestAlternative>(
      arguments.choice("alternative", {"two-sided", "less", "greater"}, 0));
  return make_kendall(variant, tests ? std::optional(side) : std::nullopt,
                      outputs_argument(arguments));
}

Made normalized_error(MetricArguments& arguments) {
  const auto scale =
      static_cast<ErrorScale>(arguments.choice("normalization", {"mean", "range", "std", "l2"}, 0));
  return make_normalized_error(scale, outputs_argument(arguments));
}

Made critical_success(MetricArguments& arguments) {
  if (arguments.find("threshold") == nullptr) {
    arguments.fail(arguments.object().place, "`threshold` is missing",
                   "write {CriticalSuccessIndex: {threshold: 0.5}}");
  }
  const double threshold = arguments.number("threshold", 0);
  const std::optional<int64_t> kept = arguments.integer("keep_sequence_dim");
  if (kept && *kept < 0) {
    arguments.fail(arguments.place_of("keep_sequence_dim"), "`keep_sequence_dim` is at least 0");
  }
  return make_critical_success(static_cast<float>(threshold), kept);
}

constexpr auto regression_entries = std::to_array<MetricClass>({
    {"MeanSquaredError", "", [](MetricArguments& a) { return mean_error(a, false); }},
    {"MeanAbsoluteError", "", [](MetricArguments& a) { return mean_error(a, true); }},
    {"MeanSquaredLogError", "",
     [](MetricArguments&) -> Made { return make_error_sum(ErrorSumFormula::squared_log); }},
    {"MeanAbsolutePercentageError", "",
     [](MetricArguments&) -> Made { return make_error_sum(ErrorSumFormula::percentage); }},
    {"SymmetricMeanAbsolutePercentageError", "",
     [](MetricArguments&) -> Made {
       return make_error_sum(ErrorSumFormula::symmetric_percentage);
     }},
    {"WeightedMeanAbsolutePercentageError", "",
     [](MetricArguments&) -> Made { return make_error_sum(ErrorSumFormula::weighted_percentage); }},
    {"LogCoshError", "",
     [](MetricArguments& a) -> Made { return make_log_cosh(outputs_argument(a)); }},
    {"MinkowskiDistance", "", minkowski},
    {"TweedieDevianceScore", "", tweedie},
    {"ContinuousRankedProbabilityScore", "",
     [](MetricArguments&) -> Made { return make_ranked_probability(); }},
    {"KLDivergence", "",
     [](MetricArguments& a) { return divergence(a, DivergenceFormula::kullback_leibler); }},
    {"JensenShannonDivergence", "",
     [](MetricArguments& a) { return divergence(a, DivergenceFormula::jensen_shannon); }},
    {"R2Score", "", r2_score},
    {"RelativeSquaredError", "",
     [](MetricArguments& a) -> Made {
       const int64_t outputs = outputs_argument(a);
       return make_relative_squared_error(outputs, a.boolean("squared", true));
     }},
    {"ExplainedVariance", "",
     [](MetricArguments& a) -> Made { return make_explained_variance(output_average(a)); }},
    {"NormalizedRootMeanSquaredError", "", normalized_error},
    {"PearsonCorrCoef", "",
     [](MetricArguments& a) -> Made {
       return make_correlation(CorrelationFormula::pearson, outputs_argument(a));
     }},
    {"ConcordanceCorrCoef", "",
     [](MetricArguments& a) -> Made {
       return make_correlation(CorrelationFormula::concordance, outputs_argument(a));
     }},
    {"SpearmanCorrCoef", "",
     [](MetricArguments& a) -> Made { return make_spearman(outputs_argument(a)); }},
    {"KendallRankCorrCoef", "", kendall},
    {"CosineSimilarity", "", cosine_similarity},
    {"CriticalSuccessIndex", "", critical_success},
    {"Perplexity", "",
     [](MetricArguments& a) -> Made { return make_perplexity(a.integer("ignore_index")); }},
});

}  // namespace

std::span<const MetricClass> regression_classes() { return regression_entries; }

}  // namespace lockstep
