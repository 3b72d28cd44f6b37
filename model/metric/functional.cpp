#include "model/metric/functional.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/tensor.hpp"
#include "model/metric/definition.hpp"
#include "model/metric/function_table.hpp"

namespace lockstep {

namespace {

const MetricFunction* find_entry(std::string_view name) {
  for (const MetricFunction& entry : metric_functions()) {
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
    default:
      throw OperationError(
          fmt::format("a metric takes no argument of this type: {}", type_of(value)));
  }
}

std::vector<std::string_view> words_of(std::string_view rest) {
  std::vector<std::string_view> words;
  while (!rest.empty()) {
    words.push_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  return words;
}

// These take as many outputs as their inputs have columns.
bool infers_outputs(std::string_view class_name) {
  constexpr std::array<std::string_view, 6> classes = {
      "LogCoshError",     "PearsonCorrCoef",     "ConcordanceCorrCoef",
      "SpearmanCorrCoef", "KendallRankCorrCoef", "RelativeSquaredError"};
  return std::find(classes.begin(), classes.end(), class_name) != classes.end();
}

Object object_of(const MetricFunction& entry, std::span<const Value> values,
                 const Tensor& predictions) {
  Object object;
  object.name = entry.class_name;
  const std::vector<std::string_view> words = words_of(entry.arguments);
  if (values.size() > words.size()) {
    const std::vector<std::string_view> names = metric_arguments_of(entry.name);
    throw OperationError(
        fmt::format("`{}` takes at most {} arguments here", entry.name, 2 + words.size()),
        fmt::format("they are preds, target{}{}", names.empty() ? "" : ", ",
                    fmt::join(names, ", ")));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name(words[i].substr(0, words[i].find('=')));
    if (i < values.size()) {
      object.arguments.push_back({name, plain_of(values[i]), {}});
    } else if (name.size() < words[i].size()) {
      object.arguments.push_back({name, {std::string(words[i].substr(name.size() + 1))}, {}});
    }
  }
  if (infers_outputs(entry.class_name) && predictions.shape.size() == 2) {
    object.arguments.push_back({"num_outputs", {predictions.shape[1]}, {}});
  }
  if (object.name.starts_with("Retrieval")) {
    object.arguments.push_back({"empty_target_action", {std::string("neg")}, {}});
  }
  return object;
}

// Of one query all items are given, so that its index does not matter.
Value value_of_query(const MetricDefinition& definition, const Tensor& predictions,
                     const Tensor& target) {
  Tensor indexes = zeros(DType::int64, predictions.shape);
  MetricState state = definition.metric->initial_state();
  definition.metric->update({&predictions, &target, &indexes}, state);
  return definition.metric->value(state);
}

}  // namespace

Value squeezed(const Value& value) {
  if (value.is(Value::Kind::list)) {
    List items;
    for (const Value& item : value.list()) {
      items.push_back(squeezed(item));
    }
    return Value(std::move(items));
  }
  const Tensor& tensor = value.tensor();
  return tensor.values.size() == 1 ? Value(Tensor{{}, tensor.values}) : value;
}

std::vector<std::string> metric_function_names() {
  std::vector<std::string> names;
  for (const MetricFunction& entry : metric_functions()) {
    names.emplace_back(entry.name);
  }
  return names;
}

bool is_metric_function(std::string_view name) { return find_entry(name) != nullptr; }

std::string metric_class_of(std::string_view function) {
  const MetricFunction* entry = find_entry(function);
  return entry == nullptr ? "" : std::string(entry->class_name);
}

std::vector<std::string_view> metric_arguments_of(std::string_view function) {
  const MetricFunction* entry = find_entry(function);
  std::vector<std::string_view> names =
      entry == nullptr ? std::vector<std::string_view>() : words_of(entry->arguments);
  for (std::string_view& name : names) {
    name = name.substr(0, name.find('='));
  }
  return names;
}

Value call_metric_function(std::string_view name, std::span<const Value> arguments) {
  const MetricFunction* entry = find_entry(name);
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
        define_metric(std::string(name), object_of(*entry, arguments.subspan(2), predictions));
    if (definition.metric->input_kind() == MetricInputKind::queries) {
      return squeezed(value_of_query(definition, predictions, target));
    }
    MetricState state = definition.metric->initial_state();
    definition.metric->update({&predictions, &target}, state);
    return squeezed(definition.metric->value(state));
  } catch (const MetricError& error) {
    throw OperationError(error.what(), error.remedy());
  }
}

}  // namespace lockstep
