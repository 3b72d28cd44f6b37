// The catalogue of metrics.
#include "model/metric/definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/metric/arguments.hpp"
#include "model/metric/catalogue.hpp"
#include "model/metric/metric_of_task.hpp"
#include "model/metric/torchmetrics_names.hpp"

namespace lockstep {

namespace {

constexpr std::array<std::string_view, 3> prefixes = {"Binary", "Multiclass", "Multilabel"};

std::vector<std::span<const MetricClass>> families() {
  return {count_classes(),      matrix_classes(),    label_sum_classes(),  curve_classes(),
          regression_classes(), retrieval_classes(), aggregation_classes()};
}

std::shared_ptr<const Metric> made_by_catalogue(MetricArguments& arguments) {
  const std::string& name = arguments.object().name;
  for (const std::span<const MetricClass> family : families()) {
    for (const MetricClass& entry : family) {
      const std::vector<std::string> names = names_of(entry);
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        return entry.make(arguments);
      }
    }
  }
  const std::optional<TorchMetricsName> known = find_torchmetrics_class(name);
  if (!known) {
    throw MetricError(arguments.object().place, fmt::format("TorchMetrics has no class `{}`", name),
                      "", false);
  }
  throw MetricError(arguments.object().place, text_of_unsupported(*known),
                    remedy_of_unsupported(*known), true);
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

std::vector<std::string> names_of(const MetricClass& entry) {
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
    definition.compute_with_cache =
        arguments.boolean("compute_with_cache", true) && !definition.metric->is_wrapper();
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
  for (const std::span<const MetricClass> family : families()) {
    for (const MetricClass& entry : family) {
      const std::vector<std::string> of_entry = names_of(entry);
      names.insert(names.end(), of_entry.begin(), of_entry.end());
    }
  }
  names.emplace_back("MetricCollection");
  return names;
}

}  // namespace lockstep
