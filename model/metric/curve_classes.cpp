#include <fmt/format.h>

#include <array>

#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/curves.hpp"
#include "model/metric/score_rows.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;
constexpr int64_t most_thresholds = 1'000'000;

std::optional<std::vector<float>> thresholds_argument(MetricArguments& arguments) {
  const PlainValue* const given = arguments.find("thresholds");
  if (given == nullptr) {
    return std::nullopt;
  }
  if (const int64_t* count = given->get_if<int64_t>()) {
    if (*count < 2 || *count > most_thresholds) {
      arguments.fail(given->place, fmt::format("`thresholds` is {}", *count),
                     fmt::format("give a number from 2 to {}, or a list", most_thresholds));
    }
    return evenly_spaced(*count);
  }
  const PlainValue::List* list = given->get_if<PlainValue::List>();
  if (list == nullptr || list->empty()) {
    arguments.fail(given->place, "`thresholds` is a number of thresholds or a list of them");
  }
  std::vector<float> thresholds;
  for (const PlainValue& item : *list) {
    const std::optional<double> threshold = item.number();
    if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
      arguments.fail(item.place, "a threshold is a number from 0 to 1");
    }
    thresholds.push_back(static_cast<float>(*threshold));
  }
  return thresholds;
}

// Curves and what is made of them have no average where none is given.
ClassAverage curve_average(MetricArguments& arguments, const std::vector<std::string>& names) {
  if (arguments.find("average") == nullptr) {
    return ClassAverage::none;
  }
  const std::string& name = names[arguments.choice("average", names, 0)];
  return name == "macro"   ? ClassAverage::macro
         : name == "micro" ? ClassAverage::micro
                           : ClassAverage::none;
}

Made area(MetricArguments& arguments, CurveFormula formula) {
  Classification classification = classification_arguments(arguments);
  CurveOptions options;
  options.formula = formula;
  if (classification.task != ClassificationTask::binary) {
    classification.average =
        average_argument(arguments, classification.task == ClassificationTask::multilabel);
  }
  options.thresholds = thresholds_argument(arguments);
  if (classification.task == ClassificationTask::binary &&
      formula == CurveFormula::area_under_roc && arguments.find("max_fpr") != nullptr) {
    const double most = arguments.number("max_fpr", 1);
    if (most <= 0 || most > 1) {
      arguments.fail(arguments.place_of("max_fpr"), "`max_fpr` is above 0 and at most 1");
    }
    options.max_fpr = static_cast<float>(most);
  }
  return make_curve_metric(classification, options);
}

Made equal_error_rate(MetricArguments& arguments) {
  Classification classification = classification_arguments(arguments);
  classification.average = classification.task == ClassificationTask::multiclass
                               ? curve_average(arguments, {"micro", "macro"})
                               : ClassAverage::none;
  CurveOptions options;
  options.formula = CurveFormula::equal_error_rate;
  options.thresholds = thresholds_argument(arguments);
  return make_curve_metric(classification, options);
}

Made area_under_log_roc(MetricArguments& arguments) {
  Classification classification = classification_arguments(arguments);
  CurveOptions options;
  options.formula = CurveFormula::area_under_log_roc;
  if (classification.task != ClassificationTask::binary) {
    classification.average = curve_average(arguments, {"macro", "none"});
  }
  options.thresholds = thresholds_argument(arguments);
  if (const PlainValue* given = arguments.find("fpr_range")) {
    const PlainValue::List* list = given->get_if<PlainValue::List>();
    const bool is_pair =
        list != nullptr && list->size() == 2 && list->front().number() && list->back().number();
    const double from = is_pair ? *list->front().number() : -1;
    const double to = is_pair ? *list->back().number() : -1;
    if (!(from >= 0 && from < to && to <= 1)) {
      arguments.fail(given->place, "`fpr_range` is two numbers from 0 to 1, the lower one first",
                     "write fpr_range: [0.001, 0.1]");
    }
    options.range = {static_cast<float>(from), static_cast<float>(to)};
  }
  return make_curve_metric(classification, options);
}

template <CurveKind kind>
Made curve(MetricArguments& arguments) {
  Classification classification = classification_arguments(arguments);
  classification.average = classification.task == ClassificationTask::multiclass
                               ? curve_average(arguments, {"micro", "macro"})
                               : ClassAverage::none;
  if (classification.task == ClassificationTask::binary) {
    arguments.require_default("normalization", PlainValue{std::string("sigmoid")});
  }
  return make_curve(classification, kind, thresholds_argument(arguments));
}

Made fixed_point(MetricArguments& arguments, FixedPoint point, const char* name) {
  const Classification classification = classification_arguments(arguments);
  const float least = fraction_argument(arguments, name);
  return make_fixed_point(classification, point, least, thresholds_argument(arguments));
}

constexpr auto curve_entries = std::to_array<MetricClass>({
    {"AUROC", "bml", [](MetricArguments& a) { return area(a, CurveFormula::area_under_roc); }},
    {"AveragePrecision", "bml",
     [](MetricArguments& a) { return area(a, CurveFormula::average_precision); }},
    {"EER", "bml", equal_error_rate},
    {"LogAUC", "bml", area_under_log_roc},
    {"ROC", "bml", curve<CurveKind::roc>},
    {"PrecisionRecallCurve", "bml", curve<CurveKind::precision_recall>},
    {"RecallAtFixedPrecision", "bml",
     [](MetricArguments& a) {
       return fixed_point(a, FixedPoint::recall_at_precision, "min_precision");
     }},
    {"PrecisionAtFixedRecall", "bml",
     [](MetricArguments& a) {
       return fixed_point(a, FixedPoint::precision_at_recall, "min_recall");
     }},
    {"SensitivityAtSpecificity", "bml",
     [](MetricArguments& a) {
       return fixed_point(a, FixedPoint::sensitivity_at_specificity, "min_specificity");
     }},
    {"SpecificityAtSensitivity", "bml",
     [](MetricArguments& a) {
       return fixed_point(a, FixedPoint::specificity_at_sensitivity, "min_sensitivity");
     }},
});

}  // namespace

std::span<const MetricClass> curve_classes() { return curve_entries; }

}  // namespace lockstep
