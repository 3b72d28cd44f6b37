// The tables of names and arguments beside what TorchMetrics 1.9.0 itself exports.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "io/scenario/classes/catalogue.hpp"
#include "model/metric/averaging.hpp"
#include "model/metric/definition.hpp"
#include "model/metric/functional.hpp"
#include "model/metric/torchmetrics_names.hpp"

using namespace lockstep;

namespace torchmetrics_names_test {
using nlohmann::json;

namespace {

json exported() {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/torchmetrics/names.json");
  return json::parse(file);
}

/// Package by name.
std::map<std::string, std::string> packages_of(const json& rows) {
  std::map<std::string, std::string> packages;
  for (const json& row : rows) {
    packages[row[0]] = row[1];
  }
  return packages;
}

std::map<std::string, std::string> packages_of(const std::vector<TorchMetricsName>& names) {
  std::map<std::string, std::string> packages;
  for (const TorchMetricsName& name : names) {
    packages[std::string(name.name)] = name.package;
  }
  return packages;
}

std::vector<std::string> words(const json& row) { return row[2].get<std::vector<std::string>>(); }

}  // namespace

TEST_CASE("every name that TorchMetrics exports is known with its package, and no other") {
  const json all = exported();
  CHECK(packages_of(torchmetrics_classes()) == packages_of(all["classes"]));
  CHECK(packages_of(torchmetrics_functions()) == packages_of(all["functions"]));
}

TEST_CASE("a name is said to be modelled exactly where the catalogue makes it") {
  const std::vector<std::string> made = metric_class_names();
  const std::set<std::string> catalogue(made.begin(), made.end());
  const std::set<std::string> by_task = [] {
    std::set<std::string> names;
    for (const TorchMetricsName& name : torchmetrics_classes()) {
      if (find_class(ObjectRole::metric, name.name) != nullptr &&
          arguments_of(*find_class(ObjectRole::metric, name.name)).front().name == "task") {
        names.emplace(name.name);
      }
    }
    return names;
  }();
  for (const TorchMetricsName& name : torchmetrics_classes()) {
    INFO(name.name);
    const std::string text(name.name);
    CHECK(name.why_not.empty() == (catalogue.count(text) + by_task.count(text) > 0));
    CHECK(name.why_not.empty() == (find_class(ObjectRole::metric, name.name) != nullptr));
    CHECK(name.why_not.empty() == name.nearest.empty());
  }
  for (const TorchMetricsName& name : torchmetrics_functions()) {
    INFO(name.name);
    CHECK(name.why_not.empty() == is_metric_function(name.name));
    CHECK(name.why_not.empty() == name.nearest.empty());
  }
}

TEST_CASE("positional arguments of classes are those of TorchMetrics, in its order") {
  for (const json& row : exported()["classes"]) {
    const ClassRow* known = find_class(ObjectRole::metric, row[0].get<std::string>());
    if (known == nullptr) {
      continue;
    }
    INFO(row[0]);
    const std::vector<ArgumentRow> rows = arguments_of(*known);
    const std::vector<std::string> theirs = words(row);
    REQUIRE(rows.size() >= theirs.size());
    for (size_t i = 0; i < theirs.size(); ++i) {
      CHECK(rows[i].name == theirs[i]);
    }
  }
}

TEST_CASE("further arguments of functions are those of TorchMetrics, in its order") {
  for (const json& row : exported()["functions"]) {
    const auto name = row[0].get<std::string>();
    if (!is_metric_function(name)) {
      continue;
    }
    INFO(name);
    const std::vector<std::string_view> ours = metric_arguments_of(name);
    const std::vector<std::string> theirs = words(row);
    REQUIRE(ours.size() + 2 <= theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      CHECK(ours[i] == theirs[i + 2]);
    }
    // What is left away is of no consequence, or the class ignores it.
    for (size_t i = ours.size() + 2; i < theirs.size(); ++i) {
      CHECK((theirs[i] == "validate_args" || theirs[i] == "zero_division"));
    }
  }
}

TEST_CASE("every function has the formula of a class that is modelled") {
  const std::vector<std::string> made = metric_class_names();
  for (const TorchMetricsName& function : torchmetrics_functions()) {
    const std::string class_name = metric_class_of(function.name);
    if (!class_name.empty()) {
      INFO(function.name);
      CHECK(find_class(ObjectRole::metric, class_name) != nullptr);
      CHECK(find_torchmetrics_class(class_name)->package == function.package);
    }
  }
}

TEST_CASE("every score that is modelled has a row in the averaging table") {
  // Counts, matrices, sums, extremes and lists are no scores.
  const std::vector<std::string_view> no_scores = {
      "StatScores",    "ConfusionMatrix", "SumMetric",     "RunningSum",      "MinMetric",
      "MaxMetric",     "CatMetric",       "ROC",           "Curve",           "AtFixedPrecision",
      "AtFixedRecall", "AtSpecificity",   "AtSensitivity", "MetricCollection"};
  for (const std::string& name : metric_class_names()) {
    INFO(name);
    const bool is_score =
        name.ends_with("AUROC") ||
        std::none_of(no_scores.begin(), no_scores.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
    CHECK(averaging_of(name, false).has_value() == is_score);
  }
}

}  // namespace torchmetrics_names_test
