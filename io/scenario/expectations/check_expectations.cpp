// Expectations that no run could ever meet or miss are faults of the file.
#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/expectations/expectation_names.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/sections/sections.hpp"
#include "model/expression/arithmetic.hpp"
#include "model/expression/evaluate.hpp"
#include "model/metric/definition.hpp"
#include "model/metric/log_dictionary.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/scenario/finding_codes.hpp"

namespace lockstep {
namespace {

/// Every result has some value of its type: enough to see whether types fit.
class StandIns final : public Environment {
 public:
  explicit StandIns(const Expectation& expectation) : expectation_(expectation) {}

  std::optional<Value> lookup(std::string_view name) override {
    for (size_t index = 0; index < expectation_.results.size(); ++index) {
      if (expectation_.results[index].placeholder == name) {
        // All different, so that no difference of two is a divisor of zero.
        return stand_in_of(expectation_.results[index].name, static_cast<int64_t>(index));
      }
    }
    return std::nullopt;
  }
  double random(const SourcePlace&) override {
    throw OperationError("an expectation cannot draw random numbers",
                         "compare results with constants");
  }
  bool unknown(const SourcePlace&) override {
    throw OperationError("an expectation cannot use `unknown`", "compare results with constants");
  }

 private:
  const Expectation& expectation_;
};

/// "step_time is a time: compare it with one, such as 400 ms".
std::string remedy_for_types(const Expectation& expectation) {
  std::string text;
  for (const ResultName& result : expectation.results) {
    text += fmt::format("{}`{}` is {}", text.empty() ? "" : ", ",
                        result.name == "metric" ? "metric " + result.key : result.name,
                        type_phrase_of(result.name));
  }
  return text;
}

void evaluate_tolerance(const Expectation& expectation, StandIns& values) {
  const Value left = evaluate(*expectation.left, values);
  const Value right = evaluate(*expectation.right, values);
  if (right == Value(Time::max())) {
    throw OperationError("no run lasts that long", "the longest time of a run is 106 d");
  }
  const Tolerance& tolerance = *expectation.tolerance;
  const Value allowed = tolerance.fraction
                            ? apply(Operator::multiply, right, Value(*tolerance.fraction))
                            : evaluate(*tolerance.absolute, values);
  apply(Operator::less_equal, apply(Operator::subtract, left, right), allowed);
}

bool names_results_only(const Expectation& expectation) {
  const auto is_result = [&](const std::string& name) {
    return std::any_of(expectation.results.begin(), expectation.results.end(),
                       [&](const ResultName& result) { return result.placeholder == name; });
  };
  const auto holds = [&](const std::optional<Expression>& part) {
    return !part || std::all_of(part->names().begin(), part->names().end(), is_result);
  };
  return holds(expectation.expression) && holds(expectation.left) && holds(expectation.right);
}

void check_types(Reader& reader, const Expectation& expectation) {
  if (!names_results_only(expectation)) {
    return;  // and a note says so
  }
  StandIns values(expectation);
  try {
    if (expectation.tolerance && expectation.left && expectation.right) {
      evaluate_tolerance(expectation, values);
    } else if (expectation.expression) {
      evaluate_each_condition(expectation.expression->root(), values);
    }
  } catch (const EvaluationError& error) {
    reader.fail_at(error.place(), error.message(),
                   error.remedy().empty() ? remedy_for_types(expectation) : error.remedy());
  } catch (const OperationError& error) {
    reader.fail_at(expectation.place, error.what(),
                   error.remedy().empty() ? remedy_for_types(expectation) : error.remedy());
  }
}

void add_member_keys(const Scenario& scenario, const std::string& name,
                     std::vector<std::string>& keys) {
  for (const NamedMetric& metric : scenario.metrics) {
    if (metric.name != name && "self." + metric.name != name) {
      continue;
    }
    try {
      const MetricDefinition definition = define_metric(metric.name, metric.metric);
      for (const MetricDefinition& member : definition.members) {
        keys.push_back(definition.key_of(member));
      }
    } catch (const MetricError&) {
      // Reported where metrics are prepared.
    }
  }
}

/// Keys of callback_metrics that the program can log: the key, and what Lightning makes of it.
std::vector<std::string> logged_keys(Scenario scenario) {
  std::vector<std::string> keys;
  if (!scenario.program) {
    return keys;
  }
  spell_out_dictionaries(scenario);
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (statement.log.name) {
      keys.push_back(statement.log.name->value);
    }
    for (const Binding& binding : statement.log.dictionary) {
      keys.push_back(binding.name);
    }
    if (statement.kind == StatementKind::log_dict && statement.log.value) {
      add_member_keys(scenario, statement.log.value->value.text(), keys);
    }
  });
  return keys;
}

bool is_made_of(std::string_view key, const std::vector<std::string>& logged) {
  constexpr std::string_view loader = "/dataloader_idx_";
  const std::string_view own = key.substr(0, std::min(key.find(loader), key.size()));
  return std::any_of(logged.begin(), logged.end(), [&](const std::string& name) {
    return own == name || own == name + "_step" || own == name + "_epoch" || key == name;
  });
}

void check_metric(Reader& reader, const ResultName& result, const Scenario& scenario) {
  const std::vector<std::string> logged = logged_keys(scenario);
  if (is_made_of(result.key, logged)) {
    return;
  }
  const std::vector<std::string_view> legal(logged.begin(), logged.end());
  reader.fail_at(result.place, fmt::format("no statement logs `{}`", result.key),
                 legal.empty() ? "the program logs nothing; add - log: {name: .., value: ..}"
                               : spelling_remedy(result.key, legal));
}

}  // namespace

void check_code(Reader& reader, const std::string& code, const SourcePlace& place) {
  const std::vector<std::string_view> legal(finding_codes.begin(), finding_codes.end());
  if (std::find(legal.begin(), legal.end(), code) == legal.end()) {
    reader.fail_at(place, fmt::format("no finding has the code `{}`", code),
                   spelling_remedy(code, legal) + "; `lockstep explain` lists them");
  }
}

void check_expectations(Reader& reader, const Scenario& scenario,
                        const std::vector<std::string>& cases) {
  const std::vector<std::string_view> legal(cases.begin(), cases.end());
  for (const Expectation& expectation : scenario.expectations) {
    for (const ResultName& result : expectation.results) {
      const bool own = result.scenario_case.empty() || result.scenario_case == scenario.name;
      if (!own && std::find(legal.begin(), legal.end(), result.scenario_case) == legal.end()) {
        reader.fail_at(result.place, fmt::format("the file has no case `{}`", result.scenario_case),
                       spelling_remedy(result.scenario_case, legal));
      } else if (own && result.name == "metric") {
        check_metric(reader, result, scenario);
      }
    }
    check_types(reader, expectation);
  }
}

}  // namespace lockstep
