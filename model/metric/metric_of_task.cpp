#include "model/metric/metric_of_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/metric/arguments.hpp"

namespace lockstep {

namespace {

/// A class of torchmetrics.classification with `task`, and what it hands on for each.
struct TaskEntry {
  std::string_view name;
  std::string_view binary;
  std::string_view multiclass;
  std::string_view multilabel;
  bool counts = true;  ///< `average` is micro, where it is not given
};

constexpr std::string_view of_binary = "threshold multidim_average zero_division";
constexpr std::string_view of_classes = "num_classes top_k average multidim_average zero_division";
constexpr std::string_view of_labels =
    "num_labels threshold average multidim_average zero_division";
constexpr std::string_view of_all =
    "ignore_index validate_args dist_sync_on_step sync_on_compute compute_on_cpu "
    "compute_with_cache";

constexpr std::string_view no_task = "-";  ///< no class of this task

constexpr auto task_entries = std::to_array<TaskEntry>({
    {"Accuracy", of_binary, of_classes, of_labels},
    {"Precision", of_binary, of_classes, of_labels},
    {"Recall", of_binary, of_classes, of_labels},
    {"Specificity", of_binary, of_classes, of_labels},
    {"F1Score", of_binary, of_classes, of_labels},
    {"FBetaScore", "beta threshold multidim_average zero_division",
     "beta num_classes top_k average multidim_average zero_division",
     "beta num_labels threshold average multidim_average zero_division"},
    {"StatScores", of_binary, of_classes, of_labels},
    {"ConfusionMatrix", "threshold normalize", "num_classes normalize",
     "num_labels threshold normalize", false},
    {"AUROC", "max_fpr thresholds", "num_classes average thresholds",
     "num_labels average thresholds", false},
    {"AveragePrecision", "thresholds", "num_classes average thresholds",
     "num_labels average thresholds", false},
    {"NegativePredictiveValue", of_binary, of_classes, of_labels},
    {"HammingDistance", of_binary, of_classes, of_labels},
    {"MatthewsCorrCoef", "threshold", "num_classes", "num_labels threshold", false},
    {"CohenKappa", "threshold weights", "num_classes weights", no_task, false},
    {"JaccardIndex", "threshold zero_division", "num_classes average zero_division",
     "num_labels threshold average zero_division", false},
    {"HingeLoss", "squared", "num_classes squared multiclass_mode", no_task, false},
    {"CalibrationError", "n_bins norm", "num_classes n_bins norm", no_task, false},
    {"ExactMatch", no_task, "num_classes multidim_average", "num_labels threshold multidim_average",
     false},
    {"ROC", "thresholds", "num_classes thresholds average", "num_labels thresholds", false},
    {"PrecisionRecallCurve", "thresholds", "num_classes thresholds average",
     "num_labels thresholds", false},
    {"EER", "thresholds", "num_classes thresholds average", "num_labels thresholds", false},
    {"LogAUC", "thresholds fpr_range", "num_classes thresholds fpr_range average",
     "num_labels thresholds fpr_range average", false},
    {"RecallAtFixedPrecision", "min_precision thresholds", "num_classes min_precision thresholds",
     "num_labels min_precision thresholds", false},
    {"PrecisionAtFixedRecall", "min_recall thresholds", "num_classes min_recall thresholds",
     "num_labels min_recall thresholds", false},
    {"SensitivityAtSpecificity", "min_specificity thresholds",
     "num_classes min_specificity thresholds", "num_labels min_specificity thresholds", false},
    {"SpecificityAtSensitivity", "min_sensitivity thresholds",
     "num_classes min_sensitivity thresholds", "num_labels min_sensitivity thresholds", false},
});

bool holds_word(std::string_view words, std::string_view word) {
  for (size_t at = 0; (at = words.find(word, at)) != std::string_view::npos; at += word.size()) {
    const bool begins = at == 0 || words[at - 1] == ' ';
    const bool ends = at + word.size() == words.size() || words[at + word.size()] == ' ';
    if (begins && ends) {
      return true;
    }
  }
  return false;
}

}  // namespace

Object metric_of_task(const Object& object) {
  const auto* const entry = std::ranges::find(task_entries, object.name, &TaskEntry::name);
  if (entry == task_entries.end()) {
    return object;
  }
  MetricArguments arguments(object);
  const std::array<std::string_view, 3> taken_by = {entry->binary, entry->multiclass,
                                                    entry->multilabel};
  constexpr std::array<const char*, 3> names = {"binary", "multiclass", "multilabel"};
  std::vector<std::string> tasks;
  std::vector<size_t> which;
  for (size_t i = 0; i < names.size(); ++i) {
    if (taken_by[i] != no_task) {
      tasks.emplace_back(names[i]);
      which.push_back(i);
    }
  }
  if (arguments.find("task") == nullptr) {
    arguments.fail(object.place, "`task` is missing",
                   fmt::format("write {{{}: {{task: {}}}}}; the tasks are {}", object.name,
                               tasks.front(), fmt::join(tasks, ", ")));
  }
  const size_t task = which[arguments.choice("task", tasks, 0)];
  const std::string_view taken = taken_by[task];
  constexpr std::array<const char*, 3> prefixes = {"Binary", "Multiclass", "Multilabel"};
  Object specific;
  specific.name = prefixes[task] + object.name;
  specific.place = object.place;
  for (const ObjectArgument& argument : object.arguments) {
    if (holds_word(taken, argument.name) || holds_word(of_all, argument.name)) {
      specific.arguments.push_back(argument);
    }
  }
  const bool is_micro = entry->counts && task != 0 && object.find("average") == nullptr;
  if (is_micro) {
    specific.arguments.push_back({"average", {std::string("micro")}, object.place});
  }
  if (object.name == "FBetaScore" && object.find("beta") == nullptr) {
    specific.arguments.push_back({"beta", {1.0}, object.place});
  }
  return specific;
}

}  // namespace lockstep
