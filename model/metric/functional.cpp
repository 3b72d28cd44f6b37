#include "model/metric/functional.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/metric/aggregation.hpp"
#include "model/metric/definition.hpp"
#include "model/scenario/evaluation_error.hpp"
#include "model/scenario/tensor.hpp"

namespace lockstep {

namespace {

struct FunctionEntry {
  std::string_view name;
  std::string_view class_name;
  std::string_view arguments;  ///< behind `preds` and `target`, in order
};

constexpr std::string_view binary = "threshold multidim_average ignore_index";
constexpr std::string_view multiclass = "num_classes average top_k multidim_average ignore_index";
constexpr std::string_view multilabel =
    "num_labels threshold average multidim_average ignore_index";
constexpr std::string_view multiclass_beta =
    "beta num_classes average top_k multidim_average ignore_index";

constexpr auto functions = std::to_array<FunctionEntry>({
    {"binary_accuracy", "BinaryAccuracy", binary},
    {"binary_precision", "BinaryPrecision", binary},
    {"binary_recall", "BinaryRecall", binary},
    {"binary_specificity", "BinarySpecificity", binary},
    {"binary_f1_score", "BinaryF1Score", binary},
    {"binary_fbeta_score", "BinaryFBetaScore", "beta threshold multidim_average ignore_index"},
    {"binary_stat_scores", "BinaryStatScores", binary},
    {"binary_confusion_matrix", "BinaryConfusionMatrix", "threshold normalize ignore_index"},
    {"binary_auroc", "BinaryAUROC", "max_fpr thresholds ignore_index"},
    {"binary_average_precision", "BinaryAveragePrecision", "thresholds ignore_index"},
    {"multiclass_accuracy", "MulticlassAccuracy", multiclass},
    {"multiclass_precision", "MulticlassPrecision", multiclass},
    {"multiclass_recall", "MulticlassRecall", multiclass},
    {"multiclass_f1_score", "MulticlassF1Score", multiclass},
    {"multiclass_fbeta_score", "MulticlassFBetaScore", multiclass_beta},
    {"multiclass_stat_scores", "MulticlassStatScores", multiclass},
    {"multiclass_confusion_matrix", "MulticlassConfusionMatrix",
     "num_classes normalize ignore_index"},
    {"multiclass_auroc", "MulticlassAUROC", "num_classes average thresholds ignore_index"},
    {"multiclass_average_precision", "MulticlassAveragePrecision",
     "num_classes average thresholds ignore_index"},
    {"multilabel_accuracy", "MultilabelAccuracy", multilabel},
    {"multilabel_precision", "MultilabelPrecision", multilabel},
    {"multilabel_recall", "MultilabelRecall", multilabel},
    {"multilabel_f1_score", "MultilabelF1Score", multilabel},
    {"multilabel_fbeta_score", "MultilabelFBetaScore",
     "beta num_labels threshold average multidim_average ignore_index"},
    {"multilabel_stat_scores", "MultilabelStatScores", multilabel},
    {"multilabel_confusion_matrix", "MultilabelConfusionMatrix",
     "num_labels threshold normalize ignore_index"},
    {"mean_squared_error", "MeanSquaredError", "squared num_outputs"},
    {"mean_absolute_error", "MeanAbsoluteError", "num_outputs"},
    {"r2_score", "R2Score", "adjusted multioutput"},
    {"pearson_corrcoef", "PearsonCorrCoef", ""},
    {"perplexity", "Perplexity", "ignore_index"},
    {"retrieval_average_precision", "RetrievalMAP", "top_k"},
});

const FunctionEntry* find_entry(std::string_view name) {
  for (const FunctionEntry& entry : functions) {
    if (entry.name == name) {
      return &entry;
    }
  }
  return nullptr;
}

PlainValue plain_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return {};
    case Value::Kind::boolean: return {value.boolean()};
    case Value::Kind::integer: return {value.integer()};
    case Value::Kind::floating: return {value.floating()};
    case Value::Kind::text: return {value.text()};
    case Value::Kind::list: {
      PlainValue::List items;
      for (const Value& item : value.list()) {
        items.push_back(plain_of(item));
      }
      return {std::move(items)};
    }
    default: throw OperationError(fmt::format("{} is not an argument of a metric", type_of(value)));
  }
}

Object object_of(const FunctionEntry& entry, std::span<const Value> values) {
  Object object;
  object.name = entry.class_name;
  const std::vector<std::string_view> names = metric_arguments_of(entry.name);
  for (const Value& value : values) {
    if (object.arguments.size() == names.size()) {
      throw OperationError(fmt::format("`{}` takes at most {} arguments here", entry.name,
                                       2 + object.arguments.size()),
                           fmt::format("they are preds, target{}{}",
                                       entry.arguments.empty() ? "" : ", ", entry.arguments));
    }
    const std::string_view name = names[object.arguments.size()];
    object.arguments.push_back({std::string(name), plain_of(value), {}});
  }
  return object;
}

Value squeezed(const Tensor& tensor) {
  if (!tensor.shape.empty() && tensor.values.size() == 1) {
    return Value(Tensor{{}, tensor.values});
  }
  return Value(tensor);
}

}  // namespace

std::vector<std::string> metric_function_names() {
  std::vector<std::string> names;
  for (const FunctionEntry& entry : functions) {
    names.emplace_back(entry.name);
  }
  return names;
}

bool is_metric_function(std::string_view name) { return find_entry(name) != nullptr; }

std::string metric_class_of(std::string_view function) {
  const FunctionEntry* entry = find_entry(function);
  return entry == nullptr ? "" : std::string(entry->class_name);
}

std::vector<std::string_view> metric_arguments_of(std::string_view function) {
  std::vector<std::string_view> names;
  const FunctionEntry* entry = find_entry(function);
  std::string_view rest = entry == nullptr ? std::string_view() : entry->arguments;
  while (!rest.empty()) {
    names.push_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(rest.size(), names.back().size() + 1));
  }
  return names;
}

Value call_metric_function(std::string_view name, std::span<const Value> arguments) {
  const FunctionEntry* entry = find_entry(name);
  ensure(entry != nullptr, "the function is one of torchmetrics.functional");
  if (arguments.size() < 2) {
    throw OperationError(fmt::format("`{}` was given {} argument{}", name, arguments.size(),
                                     arguments.size() == 1 ? "" : "s"),
                         fmt::format("write {}(preds, target)", name));
  }
  const Tensor predictions = tensor_of(arguments[0]);
  const Tensor target = tensor_of(arguments[1]);
  try {
    const MetricDefinition definition =
        define_metric(std::string(name), object_of(*entry, arguments.subspan(2)));
    if (definition.class_name == "RetrievalMAP") {
      check_equal_shapes(predictions, target);
      const std::optional<int64_t> top_k =
          arguments.size() > 2 ? std::optional(arguments[2].integer()) : std::nullopt;
      return squeezed(scalar(query_average_precision(predictions, target, top_k)));
    }
    MetricState state = definition.metric->initial_state();
    definition.metric->update({&predictions, &target}, state);
    return squeezed(definition.metric->compute(state));
  } catch (const MetricError& error) {
    throw OperationError(error.what(), error.remedy());
  }
}

}  // namespace lockstep
