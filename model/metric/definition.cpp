// The catalogue of metrics.
#include "model/metric/definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "model/metric/aggregation.hpp"
#include "model/metric/arguments.hpp"
#include "model/metric/curves.hpp"
#include "model/metric/metric_of_task.hpp"
#include "model/metric/regression.hpp"
#include "model/metric/stat_scores.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;
constexpr int64_t most_classes = 100'000;
constexpr int64_t most_thresholds = 1'000'000;

PlainValue plain(const char* text) { return {std::string(text)}; }
PlainValue plain(int64_t number) { return {number}; }

ClassificationTask task_of(const std::string& class_name) {
  return class_name.starts_with("Binary")       ? ClassificationTask::binary
         : class_name.starts_with("Multiclass") ? ClassificationTask::multiclass
                                                : ClassificationTask::multilabel;
}

int64_t count_argument(MetricArguments& arguments, const char* name, int64_t least, int64_t most) {
  const std::optional<int64_t> given = arguments.integer(name);
  if (!given) {
    arguments.fail(arguments.object().place, fmt::format("`{}` is missing", name),
                   fmt::format("write {{{}: {{{}: {}}}}}", arguments.object().name, name, least));
  }
  if (*given < least || *given > most) {
    arguments.fail(arguments.place_of(name), fmt::format("`{}` is {}", name, *given),
                   fmt::format("give a number from {} to {}", least, most));
  }
  return *given;
}

float threshold_of(MetricArguments& arguments) {
  const double threshold = arguments.number("threshold", 0.5);
  if (threshold < 0 || threshold > 1) {
    arguments.fail(arguments.place_of("threshold"), fmt::format("`threshold` is {}", threshold),
                   "give a number from 0 to 1");
  }
  return static_cast<float>(threshold);
}

ClassAverage average_of(MetricArguments& arguments, bool has_micro) {
  // `null` is `none`, which `find` does not distinguish from an absent argument.
  const PlainValue* given = arguments.object().find("average");
  if (given != nullptr && given->is_null()) {
    arguments.find("average");
    return ClassAverage::none;
  }
  std::vector<std::string> names = {"macro", "weighted", "none"};
  constexpr std::array<ClassAverage, 4> averages = {ClassAverage::macro, ClassAverage::weighted,
                                                    ClassAverage::none, ClassAverage::micro};
  if (has_micro) {
    names.push_back("micro");
  }
  return averages[arguments.choice("average", names, 0)];
}

Classification classification_of(MetricArguments& arguments) {
  Classification classification;
  classification.task = task_of(arguments.object().name);
  if (classification.task == ClassificationTask::multiclass) {
    classification.classes = count_argument(arguments, "num_classes", 2, most_classes);
  } else if (classification.task == ClassificationTask::multilabel) {
    classification.classes = count_argument(arguments, "num_labels", 2, most_classes);
  }
  classification.ignore_index = arguments.integer("ignore_index");
  arguments.boolean("validate_args", true);
  return classification;
}

Made count_metric(MetricArguments& arguments, CountFormula formula, bool one_score) {
  Classification classification = classification_of(arguments);
  if (classification.task != ClassificationTask::multiclass) {
    classification.threshold = threshold_of(arguments);
  }
  if (classification.task != ClassificationTask::binary) {
    classification.average = average_of(arguments, true);
  }
  if (classification.task == ClassificationTask::multiclass) {
    arguments.require_default("top_k", plain(int64_t{1}));
  }
  arguments.require_default("multidim_average", plain("global"));
  CountOptions options;
  options.formula = formula;
  if (formula == CountFormula::f_beta && !one_score) {
    const double beta = arguments.number("beta", 0);
    if (beta <= 0) {
      arguments.fail(arguments.place_of("beta"), "`beta` is a number above 0");
    }
    options.beta = static_cast<float>(beta);
  }
  const int64_t zero_division = arguments.integer("zero_division", 0);
  if (zero_division != 0 && zero_division != 1) {
    arguments.fail(arguments.place_of("zero_division"), "`zero_division` is 0 or 1");
  }
  options.zero_division = static_cast<float>(zero_division);
  return make_count_metric(classification, options);
}

Made confusion_matrix(MetricArguments& arguments) {
  Classification classification = classification_of(arguments);
  if (classification.task != ClassificationTask::multiclass) {
    classification.threshold = threshold_of(arguments);
  }
  if (classification.classes * classification.classes > int64_t{1} << 26) {
    arguments.fail(arguments.place_of("num_classes"), "the matrix has more than 2^26 entries");
  }
  const size_t by = arguments.choice("normalize", {"none", "true", "pred", "all"}, 0);
  return make_confusion_matrix(classification, static_cast<ConfusionNormalization>(by));
}

std::vector<float> thresholds_of(MetricArguments& arguments, const PlainValue& given) {
  std::vector<float> thresholds;
  if (const int64_t* count = given.get_if<int64_t>()) {
    if (*count < 2 || *count > most_thresholds) {
      arguments.fail(given.place, fmt::format("`thresholds` is {}", *count),
                     fmt::format("give a number from 2 to {}, or a list", most_thresholds));
    }
    return evenly_spaced(*count);
  }
  const PlainValue::List* list = given.get_if<PlainValue::List>();
  if (list == nullptr || list->empty()) {
    arguments.fail(given.place, "`thresholds` is a number of thresholds or a list of them");
  }
  for (const PlainValue& item : *list) {
    const std::optional<double> threshold = item.number();
    if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
      arguments.fail(item.place, "a threshold is a number from 0 to 1");
    }
    thresholds.push_back(static_cast<float>(*threshold));
  }
  return thresholds;
}

Made curve_metric(MetricArguments& arguments, CurveFormula formula) {
  Classification classification = classification_of(arguments);
  CurveOptions options;
  options.formula = formula;
  if (classification.task == ClassificationTask::multiclass) {
    classification.average = average_of(arguments, false);
  }
  if (const PlainValue* thresholds = arguments.find("thresholds")) {
    options.thresholds = thresholds_of(arguments, *thresholds);
  }
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

Made mean_error(MetricArguments& arguments, bool absolute) {
  const bool squared = absolute || arguments.boolean("squared", true);
  const int64_t outputs = arguments.integer("num_outputs", 1);
  if (outputs < 1 || outputs > most_classes) {
    arguments.fail(arguments.place_of("num_outputs"), "`num_outputs` is at least 1");
  }
  return make_mean_error(absolute  ? ErrorFormula::absolute
                         : squared ? ErrorFormula::squared
                                   : ErrorFormula::root_of_squared,
                         outputs);
}

Made r2_score(MetricArguments& arguments) {
  arguments.require_default("multioutput", plain("uniform_average"));
  const int64_t adjusted = arguments.integer("adjusted", 0);
  if (adjusted < 0) {
    arguments.fail(arguments.place_of("adjusted"), "`adjusted` is at least 0");
  }
  return make_r2_score(adjusted);
}

Made pearson(MetricArguments& arguments) {
  const int64_t outputs = arguments.integer("num_outputs", 1);
  if (outputs < 1 || outputs > most_classes) {
    arguments.fail(arguments.place_of("num_outputs"), "`num_outputs` is at least 1");
  }
  return make_pearson(outputs);
}

Made aggregation(MetricArguments& arguments, Aggregation kind) {
  NanStrategy strategy;
  const PlainValue* given = arguments.find("nan_strategy");
  if (given != nullptr && given->number()) {
    strategy.kind = NanStrategy::Kind::replace;
    strategy.replacement = static_cast<float>(*given->number());
  } else if (given != nullptr) {
    const size_t which =
        arguments.choice("nan_strategy", {"warn", "ignore", "error", "disable"}, 0);
    strategy.kind = which < 2    ? NanStrategy::Kind::drop
                    : which == 2 ? NanStrategy::Kind::error
                                 : NanStrategy::Kind::disable;
  }
  return make_aggregation(kind, strategy);
}

Made retrieval_map(MetricArguments& arguments) {
  RetrievalOptions options;
  options.empty_target_action = static_cast<RetrievalOptions::Empty>(
      arguments.choice("empty_target_action", {"neg", "pos", "skip", "error"}, 0));
  options.aggregation = static_cast<RetrievalOptions::Over>(
      arguments.choice("aggregation", {"mean", "median", "min", "max"}, 0));
  options.ignore_index = arguments.integer("ignore_index");
  options.top_k = arguments.integer("top_k");
  if (options.top_k && *options.top_k < 1) {
    arguments.fail(arguments.place_of("top_k"), "`top_k` is at least 1");
  }
  return make_retrieval_map(options);
}

struct ClassEntry {
  std::string_view suffix;  ///< behind Binary, Multiclass or Multilabel where `tasks` says so
  std::string_view tasks;   ///< "bml": of these tasks; "": the whole name
  Made (*make)(MetricArguments&);
};

constexpr std::array<ClassEntry, 20> entries{{
    {"Accuracy", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::accuracy, true); }},
    {"Precision", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::precision, true); }},
    {"Recall", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::recall, true); }},
    {"Specificity", "b",
     [](MetricArguments& a) { return count_metric(a, CountFormula::specificity, true); }},
    {"F1Score", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::f_beta, true); }},
    {"FBetaScore", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::f_beta, false); }},
    {"StatScores", "bml",
     [](MetricArguments& a) { return count_metric(a, CountFormula::counts, true); }},
    {"ConfusionMatrix", "bml", confusion_matrix},
    {"AUROC", "bm",
     [](MetricArguments& a) { return curve_metric(a, CurveFormula::area_under_roc); }},
    {"AveragePrecision", "bm",
     [](MetricArguments& a) { return curve_metric(a, CurveFormula::average_precision); }},
    {"MeanSquaredError", "", [](MetricArguments& a) { return mean_error(a, false); }},
    {"MeanAbsoluteError", "", [](MetricArguments& a) { return mean_error(a, true); }},
    {"R2Score", "", r2_score},
    {"PearsonCorrCoef", "", pearson},
    {"Perplexity", "",
     [](MetricArguments& a) -> Made { return make_perplexity(a.integer("ignore_index")); }},
    {"MeanMetric", "", [](MetricArguments& a) { return aggregation(a, Aggregation::mean); }},
    {"SumMetric", "", [](MetricArguments& a) { return aggregation(a, Aggregation::sum); }},
    {"MaxMetric", "", [](MetricArguments& a) { return aggregation(a, Aggregation::max); }},
    {"MinMetric", "", [](MetricArguments& a) { return aggregation(a, Aggregation::min); }},
    {"CatMetric", "", [](MetricArguments& a) { return aggregation(a, Aggregation::cat); }},
}};

constexpr std::array<std::string_view, 3> prefixes = {"Binary", "Multiclass", "Multilabel"};

std::vector<std::string> names_of(const ClassEntry& entry) {
  if (entry.tasks.empty()) {
    return {std::string(entry.suffix)};
  }
  std::vector<std::string> names;
  for (size_t task = 0; task < prefixes.size(); ++task) {
    if (entry.tasks.find("bml"[task]) != std::string_view::npos) {
      names.push_back(std::string(prefixes[task]) + std::string(entry.suffix));
    }
  }
  return names;
}

Made made_by_catalogue(MetricArguments& arguments) {
  const std::string& name = arguments.object().name;
  if (name == "RetrievalMAP") {
    return retrieval_map(arguments);
  }
  for (const ClassEntry& entry : entries) {
    const std::vector<std::string> names = names_of(entry);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return entry.make(arguments);
    }
  }
  arguments.fail_unsupported(arguments.object().place, "this metric is not modelled",
                             "use one of the others");
}

void add_member(MetricDefinition& collection, const std::string& name, const PlainValue& value,
                const MetricArguments& arguments) {
  const std::optional<Object> object = as_object(value);
  if (!object) {
    arguments.fail(value.place, "a member is a metric", "write [BinaryF1Score, BinaryAUROC]");
  }
  MetricDefinition member = define_metric(name.empty() ? object->name : name, *object);
  if (member.is_collection()) {
    arguments.fail_unsupported(value.place, "a collection inside a collection is not modelled");
  }
  for (const MetricDefinition& known : collection.members) {
    if (known.name == member.name) {
      arguments.fail(value.place, fmt::format("two members are named {}", member.name),
                     "name them: {first: .., second: ..}");
    }
  }
  collection.members.push_back(std::move(member));
}

// A list keeps its order and is named by its classes; a map is sorted by its names.
void define_members(MetricDefinition& collection, MetricArguments& arguments) {
  collection.prefix = arguments.text("prefix", "");
  collection.postfix = arguments.text("postfix", "");
  collection.compute_groups = arguments.boolean("compute_groups", true);
  const PlainValue* metrics = arguments.find("metrics");
  if (metrics == nullptr) {
    arguments.fail(arguments.object().place, "`metrics` is missing",
                   "write {MetricCollection: {metrics: [BinaryF1Score, BinaryAUROC]}}");
  }
  if (const PlainValue::List* list = metrics->get_if<PlainValue::List>()) {
    for (const PlainValue& item : *list) {
      add_member(collection, "", item, arguments);
    }
  } else if (const PlainValue::Map* map = metrics->get_if<PlainValue::Map>()) {
    std::vector<const PlainEntry*> sorted;
    for (const PlainEntry& entry : *map) {
      sorted.push_back(&entry);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const PlainEntry* a, const PlainEntry* b) { return a->key < b->key; });
    for (const PlainEntry* entry : sorted) {
      add_member(collection, entry->key, entry->value, arguments);
    }
  }
  if (collection.members.empty()) {
    arguments.fail(metrics->place, "`metrics` is a list or a map of metrics, of one at least",
                   "write {MetricCollection: {metrics: [BinaryF1Score, BinaryAUROC]}}");
  }
}

}  // namespace

MetricDefinition define_metric(const std::string& name, const Object& written) {
  const Object object = metric_of_task(written);
  MetricDefinition definition;
  definition.name = name;
  definition.class_name = object.name;
  definition.place = object.place;
  MetricArguments arguments(object);
  if (object.name == "MetricCollection") {
    define_members(definition, arguments);
  } else {
    definition.metric = made_by_catalogue(arguments);
    definition.dist_sync_on_step = arguments.boolean("dist_sync_on_step", false);
    definition.sync_on_compute = arguments.boolean("sync_on_compute", true);
    definition.compute_with_cache = arguments.boolean("compute_with_cache", true);
    definition.compute_on_cpu = arguments.boolean("compute_on_cpu", false);
  }
  arguments.finish();
  return definition;
}

std::string metric_name_of(const std::string& written) {
  constexpr std::string_view self = "self.";
  return written.starts_with(self) ? written.substr(self.size()) : written;
}

std::vector<std::string> metric_class_names() {
  std::vector<std::string> names;
  for (const ClassEntry& entry : entries) {
    for (std::string& name : names_of(entry)) {
      names.push_back(std::move(name));
    }
  }
  names.insert(names.end(), {"RetrievalMAP", "MetricCollection"});
  return names;
}

}  // namespace lockstep
