#include <fmt/format.h>

#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/retrieval.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

RetrievalOptions retrieval_options(MetricArguments& arguments, RetrievalOptions::Empty otherwise) {
  RetrievalOptions options;
  options.empty_target_action = static_cast<RetrievalOptions::Empty>(arguments.choice(
      "empty_target_action", {"neg", "pos", "skip", "error"}, static_cast<size_t>(otherwise)));
  options.aggregation = static_cast<RetrievalOptions::Over>(
      arguments.choice("aggregation", {"mean", "median", "min", "max"}, 0));
  options.ignore_index = arguments.integer("ignore_index");
  return options;
}

std::optional<int64_t> items_argument(MetricArguments& arguments, const char* name) {
  const std::optional<int64_t> items = arguments.integer(name);
  if (items && *items < 1) {
    arguments.fail(arguments.place_of(name), fmt::format("`{}` is at least 1", name));
  }
  return items;
}

template <QueryFormula formula>
Made retrieval(MetricArguments& arguments) {
  constexpr bool of_irrelevant = formula == QueryFormula::fall_out;
  QueryOptions query;
  query.formula = formula;
  if (formula != QueryFormula::r_precision) {
    query.top_k = items_argument(arguments, "top_k");
  }
  if (formula == QueryFormula::precision) {
    query.adaptive_k = arguments.boolean("adaptive_k", false);
  }
  if (formula == QueryFormula::area_under_roc && arguments.find("max_fpr") != nullptr) {
    query.max_fpr = fraction_argument(arguments, "max_fpr");
  }
  return make_retrieval(
      query, retrieval_options(arguments, of_irrelevant ? RetrievalOptions::Empty::positive
                                                        : RetrievalOptions::Empty::negative));
}

Made retrieval_curve(MetricArguments& arguments, bool is_point) {
  RetrievalCurveOptions curve;
  if (is_point) {
    curve.min_precision = arguments.find("min_precision") == nullptr
                              ? 0
                              : fraction_argument(arguments, "min_precision");
  }
  curve.max_k = items_argument(arguments, "max_k");
  curve.adaptive_k = arguments.boolean("adaptive_k", false);
  return make_retrieval_curve(curve,
                              retrieval_options(arguments, RetrievalOptions::Empty::negative));
}

constexpr auto retrieval_entries = std::to_array<MetricClass>({
    {"RetrievalMAP", "", retrieval<QueryFormula::average_precision>},
    {"RetrievalMRR", "", retrieval<QueryFormula::reciprocal_rank>},
    {"RetrievalNormalizedDCG", "", retrieval<QueryFormula::normalized_gain>},
    {"RetrievalPrecision", "", retrieval<QueryFormula::precision>},
    {"RetrievalRecall", "", retrieval<QueryFormula::recall>},
    {"RetrievalHitRate", "", retrieval<QueryFormula::hit_rate>},
    {"RetrievalFallOut", "", retrieval<QueryFormula::fall_out>},
    {"RetrievalRPrecision", "", retrieval<QueryFormula::r_precision>},
    {"RetrievalAUROC", "", retrieval<QueryFormula::area_under_roc>},
    {"RetrievalPrecisionRecallCurve", "",
     [](MetricArguments& a) { return retrieval_curve(a, false); }},
    {"RetrievalRecallAtFixedPrecision", "",
     [](MetricArguments& a) { return retrieval_curve(a, true); }},
});

}  // namespace

std::span<const MetricClass> retrieval_classes() { return retrieval_entries; }

}  // namespace lockstep
