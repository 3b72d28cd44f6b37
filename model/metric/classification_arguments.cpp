#include "model/metric/classification_arguments.hpp"

#include <fmt/format.h>

#include <array>

namespace lockstep {

namespace {

ClassificationTask task_of(const std::string& class_name) {
  return class_name.starts_with("Binary")       ? ClassificationTask::binary
         : class_name.starts_with("Multiclass") ? ClassificationTask::multiclass
                                                : ClassificationTask::multilabel;
}

}  // namespace

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

int64_t outputs_argument(MetricArguments& arguments) {
  const int64_t outputs = arguments.integer("num_outputs", 1);
  if (outputs < 1 || outputs > most_classes) {
    arguments.fail(arguments.place_of("num_outputs"), "`num_outputs` is at least 1");
  }
  return outputs;
}

float threshold_argument(MetricArguments& arguments) {
  const double threshold = arguments.number("threshold", 0.5);
  if (threshold < 0 || threshold > 1) {
    arguments.fail(arguments.place_of("threshold"), fmt::format("`threshold` is {}", threshold),
                   "give a number from 0 to 1");
  }
  return static_cast<float>(threshold);
}

ClassAverage average_argument(MetricArguments& arguments, bool has_micro) {
  // `null` is `none`, which `find` does not tell from an absent argument.
  const PlainValue* given = arguments.object().find("average");
  if (given != nullptr && given->is_null()) {
    arguments.find("average");
    return ClassAverage::none;
  }
  std::vector<std::string> names = {"macro", "weighted", "none"};
  constexpr std::array<ClassAverage, 4> averages = {ClassAverage::macro, ClassAverage::weighted,
                                                    ClassAverage::none, ClassAverage::micro};
  if (has_micro) {
    names.emplace_back("micro");
  }
  return averages[arguments.choice("average", names, 0)];
}

float fraction_argument(MetricArguments& arguments, const char* name) {
  if (arguments.find(name) == nullptr) {
    arguments.fail(arguments.object().place, fmt::format("`{}` is missing", name),
                   fmt::format("write {}: 0.5", name));
  }
  const double given = arguments.number(name, 0);
  if (given < 0 || given > 1) {
    arguments.fail(arguments.place_of(name), fmt::format("`{}` is {}", name, given),
                   "give a number from 0 to 1");
  }
  return static_cast<float>(given);
}

float zero_division_argument(MetricArguments& arguments) {
  const double given = arguments.number("zero_division", 0);
  if (given != 0 && given != 1) {
    arguments.fail(arguments.place_of("zero_division"), "`zero_division` is 0 or 1");
  }
  return static_cast<float>(given);
}

Classification classification_arguments(MetricArguments& arguments) {
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

Classification thresholded_arguments(MetricArguments& arguments) {
  Classification classification = classification_arguments(arguments);
  if (classification.task != ClassificationTask::multiclass) {
    classification.threshold = threshold_argument(arguments);
  }
  return classification;
}

}  // namespace lockstep
