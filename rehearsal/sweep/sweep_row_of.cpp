#include "rehearsal/sweep/sweep_row_of.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "rehearsal/jobs.hpp"
#include "rehearsal/judge/result_value.hpp"
#include "rehearsal/outcome.hpp"
#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

namespace {

Value largest_of_ranks(const ResultName& name, const Rehearsal& rehearsal) {
  Value largest;
  const size_t ranks = differs_by_rank(name) ? rehearsal.results.ranks.size() : 1;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto found = value_of(name, rehearsal, static_cast<int32_t>(rank));
    const auto* value = std::get_if<Value>(&found);
    if (value == nullptr || value->is(Value::Kind::null)) {
      continue;
    }
    const bool is_first = largest.is(Value::Kind::null);
    if (is_first || (!value->is(Value::Kind::text) &&
                     condition_of(apply(Operator::greater, *value, largest)))) {
      largest = *value;
    }
  }
  return largest;
}

std::string verdict_word(Outcome outcome, const Rehearsal& rehearsal) {
  switch (outcome) {
    case Outcome::predicted:
      return exit_code_of(rehearsal, false) == ExitCode::findings ? "findings" : "ok";
    case Outcome::refused: return "refused";
    case Outcome::invalid: return "invalid";
    case Outcome::unsupported: return "unsupported";
    case Outcome::undecided: return "undecided";
    case Outcome::out_of_memory: return "out_of_memory";
    case Outcome::hangs: return "hangs";
    case Outcome::raises: return "raises";
  }
  return "";
}

std::string first_problem(const Rehearsal& rehearsal, Problem::Kind kind) {
  const auto found = std::ranges::find(rehearsal.problems, kind, &Problem::kind);
  return found == rehearsal.problems.end() ? "" : found->message;
}

std::string first_error(const Rehearsal& rehearsal, const std::string& otherwise) {
  const auto found = std::ranges::find(rehearsal.findings, Level::error, &Finding::level);
  if (found == rehearsal.findings.end()) {
    return otherwise;
  }
  const bool tells_more = found->code == "LS401" && !found->why.text.empty();
  return tells_more ? found->title + ": " + found->why.text : found->title;
}

// Why there is no prediction.
std::string message_of(Outcome outcome, const Rehearsal& rehearsal) {
  switch (outcome) {
    case Outcome::predicted: return "";
    case Outcome::refused: return first_problem(rehearsal, Problem::Kind::refused);
    case Outcome::invalid: return first_problem(rehearsal, Problem::Kind::invalid);
    case Outcome::unsupported: return first_problem(rehearsal, Problem::Kind::unsupported);
    case Outcome::undecided:
      return rehearsal.undecided.empty() ? "the case did not run" : rehearsal.undecided;
    default: return first_error(rehearsal, rehearsal.why_no_prediction());
  }
}

void tell(const Rehearsal& rehearsal, SweepRow& row) {
  const Outcome outcome = outcome_of(rehearsal);
  row.verdict = verdict_word(outcome, rehearsal);
  row.message = message_of(outcome, rehearsal);
  for (const Finding& finding : rehearsal.findings) {
    const bool is_known = std::ranges::count(row.codes, finding.code) > 0;
    if (!is_known && !finding.code.empty() && finding.level != Level::note) {
      row.codes.push_back(finding.code);
    }
  }
  if (rehearsal.ran()) {
    row.figures = sweep_figures(rehearsal);
  }
}

}  // namespace

std::string command_of(const CaseSource& source, const std::vector<std::string>& settings,
                       std::string_view command) {
  Scenario named;
  named.file = source.path;
  named.name = source.scenario_case.value_or("");
  named.settings = source.set;
  named.settings.insert(named.settings.end(), settings.begin(), settings.end());
  return fmt::format("lockstep {} {}", command, shell_words(named));
}
std::vector<std::pair<std::string, Value>> sweep_figures(const Rehearsal& rehearsal) {
  std::vector<std::pair<std::string, Value>> figures;
  const bool is_prediction = outcome_of(rehearsal) == Outcome::predicted;
  for (const std::string_view name : figure_names()) {
    const ResultName result{"", "", std::string(name), "", {}};
    const bool is_configuration = !is_quantity(result) && !differs_by_rank(result);
    if (name == exposed_share || (!is_prediction && !is_configuration)) {
      continue;
    }
    if (Value value = largest_of_ranks(result, rehearsal); !value.is(Value::Kind::null)) {
      figures.emplace_back(name, std::move(value));
    }
  }
  const Breakdown& parts = rehearsal.results.prediction.breakdown;
  if (is_prediction && parts.whole() > Time{}) {
    figures.emplace_back(exposed_share,
                         seconds(parts.exposed_communication) / seconds(parts.whole()));
  }
  return figures;
}

SweepRow run_sweep_case(const CaseSource& source, const SweepCases& cases, int64_t number,
                        const RehearseRequest& request) {
  const std::vector<std::string> settings = cases.settings_of(number);
  SweepRow row;
  row.number = number;
  row.values = cases.values_of(number);
  row.command = command_of(source, settings);
  try {
    LoadedScenarios loaded = source.load(settings);
    if (!loaded.ok()) {
      const Diagnostic& first = loaded.diagnostics.front();
      row.verdict = "invalid";
      row.message = first.message;
      return row;
    }
    const auto scenario = std::make_shared<const Scenario>(std::move(loaded.scenarios.front()));
    CaseSource own = source;
    own.set.insert(own.set.end(), settings.begin(), settings.end());
    tell(rehearse_case({std::move(own), scenario,
                        std::make_shared<const Sources>(std::move(loaded.sources)), request}),
         row);
  } catch (const std::exception& error) {
    row.verdict = "internal_error";
    row.message = fmt::format("bug in lockstep: {}", error.what());
  }
  return row;
}

}  // namespace lockstep::cli
