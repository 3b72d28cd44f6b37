#include "rehearsal/judge/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/expression/arithmetic.hpp"
#include "model/expression/evaluate.hpp"
#include "model/scenario/finding_codes.hpp"
#include "rehearsal/explore/explorer_port.hpp"
#include "rehearsal/judge/expected_finding.hpp"
#include "rehearsal/judge/result_value.hpp"

namespace lockstep::cli {

namespace {

/// A result that an expression asked for and that has no value.
class Unknown final : public std::runtime_error {
 public:
  explicit Unknown(const std::string& reason, bool never = false)
      : std::runtime_error(reason), never_(never) {}
  bool never() const { return never_; }

 private:
  bool never_;
};

/// The results of one rank, as names of an expression.
class ResultScope final : public Environment {
 public:
  ResultScope(const Expectation& expectation, const Rehearsal& rehearsal, int32_t rank,
              const OtherCase& other_case)
      : expectation_(expectation), rehearsal_(rehearsal), rank_(rank), other_case_(other_case) {}

  std::optional<Value> lookup(std::string_view name) override {
    for (const ResultName& result : expectation_.results) {
      if (result.placeholder == name) {
        return value(result);
      }
    }
    return std::nullopt;
  }
  double random(const SourcePlace&) override {
    throw Unknown("an expectation cannot draw random numbers");
  }
  bool unknown(const SourcePlace&) override {
    throw Unknown("an expectation cannot use `unknown`");
  }

  /// "step_time is 41.2 ms": what every name stood for.
  std::string told() const {
    std::string text;
    for (const auto& [name, shown] : told_) {
      text += (text.empty() ? "" : ", ") + name + " is " + shown;
    }
    return text;
  }

 private:
  Value value(const ResultName& result) {
    const Rehearsal* of = &rehearsal_;
    if (!result.scenario_case.empty() && result.scenario_case != rehearsal_.scenario->name) {
      of = other_case_ ? other_case_(result.scenario_case) : nullptr;
    }
    if (of == nullptr) {
      throw Unknown(fmt::format("the case `{}` has not run", result.scenario_case), true);
    }
    if (!of->undecided.empty()) {
      throw Unknown(of->undecided, true);
    }
    const auto found =
        result.name == "single_device" ? single_device(*of) : value_of(result, *of, rank_);
    if (const auto* none = std::get_if<NoValue>(&found)) {
      throw Unknown(name_of(result) + ": " + none->reason, none->never);
    }
    const Value value = std::get<Value>(found);
    told_.emplace_back(name_of(result), text_of(value));
    return value;
  }

  // The value of the metric that the same expectation names.
  std::variant<Value, NoValue> single_device(const Rehearsal& of) const {
    if (!of.results.single_device) {
      return NoValue{"the case was not compared with one device", true};
    }
    for (const ResultName& result : expectation_.results) {
      const auto found = of.results.single_device->find(result.key);
      if (result.name == "metric" && found != of.results.single_device->end()) {
        return Value(found->second);
      }
    }
    return NoValue{"one device logged no such metric"};
  }

  static std::string name_of(const ResultName& result) {
    std::string text = result.scenario_case.empty() ? "" : result.scenario_case + ".";
    if (result.name == "transfers.bytes") {
      return text + "transfers." + result.key + ".bytes";
    }
    text += result.name == "device_list" ? "devices" : result.name;
    if (!result.key.empty()) {
      text += (result.name == "metric" ? " " : ".") + result.key;
    }
    return text;
  }

  const Expectation& expectation_;
  const Rehearsal& rehearsal_;
  int32_t rank_;
  const OtherCase& other_case_;
  std::vector<std::pair<std::string, std::string>> told_;
};

bool within(const Expectation& expectation, ResultScope& scope) {
  const Value left = evaluate(*expectation.left, scope);
  const Value right = evaluate(*expectation.right, scope);
  Value difference = apply(Operator::subtract, left, right);
  const auto magnitude = [](const Value& value) {
    const Value zero(int64_t{0});
    const bool negative = condition_of(apply(Operator::less, value, zero));
    return negative ? negated(value) : value;
  };
  const Tolerance& tolerance = *expectation.tolerance;
  const Value allowed =
      tolerance.fraction ? apply(Operator::multiply, magnitude(right), Value(*tolerance.fraction))
                         : evaluate(*tolerance.absolute, scope);
  return condition_of(apply(Operator::less_equal, magnitude(difference), allowed));
}

Judged judge_on(const Expectation& expectation, const Rehearsal& rehearsal, int32_t rank,
                const OtherCase& other_case, bool tell_rank) {
  Judged judged{expectation.text, false, true, "", expectation.place};
  ResultScope scope(expectation, rehearsal, rank, other_case);
  try {
    judged.met = expectation.tolerance ? within(expectation, scope)
                                       : evaluate_condition(*expectation.expression, scope);
    judged.actual = scope.told();
  } catch (const Unknown& reason) {
    judged.judged = !reason.never();
    judged.actual = reason.what();
  } catch (const std::runtime_error& error) {
    judged.actual = error.what();
  }
  if (tell_rank && !judged.met) {
    judged.actual += fmt::format(" on rank {}", rank);
  }
  return judged;
}

Judged judge_expression(const Expectation& expectation, const Rehearsal& rehearsal,
                        const OtherCase& other_case) {
  const bool by_rank =
      std::any_of(expectation.results.begin(), expectation.results.end(), differs_by_rank);
  if (expectation.rank) {
    return judge_on(expectation, rehearsal, static_cast<int32_t>(*expectation.rank), other_case,
                    true);
  }
  Judged judged;
  const auto ranks = by_rank ? static_cast<int32_t>(rehearsal.results.ranks.size()) : 1;
  for (int32_t rank = 0; rank < std::max(1, ranks); ++rank) {
    judged = judge_on(expectation, rehearsal, rank, other_case, by_rank);
    if (!judged.met) {
      return judged;
    }
  }
  return judged;
}

std::string codes_found(const Rehearsal& rehearsal) {
  std::set<std::string> codes;
  for (const Finding& finding : rehearsal.findings) {
    codes.insert(finding.code.empty() ? finding.title : finding.code);
  }
  std::string text;
  for (const std::string& code : codes) {
    text += (text.empty() ? "found " : ", ") + code;
  }
  return text.empty() ? "found none" : text;
}

bool has_finding(const Rehearsal& rehearsal, const Expectation& expectation) {
  return std::ranges::any_of(rehearsal.findings, [&](const Finding& finding) {
    return names_finding(expectation, finding, rehearsal.sites);
  });
}

bool has_assertion(const Rehearsal& rehearsal, const Expectation& expectation) {
  return std::ranges::any_of(rehearsal.findings, [&](const Finding& finding) {
    return tells_an_assertion(finding) &&
           std::ranges::all_of(expectation.on_ranks, [&](int64_t rank) {
             return finding.ranks.contains(static_cast<int32_t>(rank));
           });
  });
}

// What was found of the codes asked for, where the place, level or ranks are what differs.
std::string findings_alike(const Expectation& expectation, const Rehearsal& rehearsal) {
  std::string text;
  for (const Finding& finding : rehearsal.findings) {
    if (std::ranges::count(expectation.codes, finding.code) != 0) {
      text +=
          fmt::format("{}{} {} at {} on {}", text.empty() ? "found " : ", ", name_of(finding.level),
                      finding.code, rehearsal.sites.place(finding.site()), finding.ranks.phrase());
    }
  }
  return text.empty() ? codes_found(rehearsal) : text;
}

// Why this world cannot answer; empty: it can.
std::string not_judged_here(const Expectation& expectation, const Rehearsal& rehearsal) {
  if (!is_real(rehearsal.world) || !rehearsal.ran()) {
    return "";
  }
  if (!unknown_sites(*rehearsal.scenario).empty()) {
    return "not judged in this world: `unknown` is taken as false";
  }
  return std::ranges::count(expectation.codes, "LS402") != 0
             ? "not judged in this world: its times are not the cluster's"
             : "";
}

Judged judge_word(const Expectation& expectation, const Rehearsal& rehearsal) {
  Judged judged{expectation.text, false, true, "", expectation.place};
  const std::string beyond = not_judged_here(expectation, rehearsal);
  const bool undecided = !rehearsal.undecided.empty() || !beyond.empty();
  const bool counted = std::any_of(
      rehearsal.findings.begin(), rehearsal.findings.end(), [&](const Finding& finding) {
        return finding.level != Level::note &&
               ignore_reason(*rehearsal.scenario, finding.code).empty();
      });
  switch (expectation.kind) {
    case ExpectationKind::no_hang: judged.met = !rehearsal.hung; break;
    case ExpectationKind::hang: judged.met = rehearsal.hung; break;
    case ExpectationKind::no_findings: judged.met = !counted; break;
    case ExpectationKind::finding: judged.met = has_finding(rehearsal, expectation); break;
    case ExpectationKind::no_finding: judged.met = !has_finding(rehearsal, expectation); break;
    case ExpectationKind::assertion: judged.met = has_assertion(rehearsal, expectation); break;
    case ExpectationKind::refused: judged.met = rehearsal.refused(); break;
    case ExpectationKind::raises:
      judged.met = std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(), tells_a_raise);
      break;
    case ExpectationKind::expression: break;
  }
  const bool positive =
      expectation.kind == ExpectationKind::hang || expectation.kind == ExpectationKind::finding ||
      expectation.kind == ExpectationKind::refused || expectation.kind == ExpectationKind::raises ||
      expectation.kind == ExpectationKind::assertion;
  if (undecided && judged.met != positive) {
    judged.judged = false;
    judged.met = false;
    judged.actual = beyond.empty() ? rehearsal.undecided : beyond;
  } else if (!judged.met) {
    const bool hang_word =
        expectation.kind == ExpectationKind::hang || expectation.kind == ExpectationKind::no_hang;
    judged.actual = hang_word ? (rehearsal.hung ? "an order hangs" : "no explored order hangs")
                              : findings_alike(expectation, rehearsal);
  }
  return judged;
}

bool can_judge(const Expectation& expectation, Judges judges) {
  if (judges == Judges::all) {
    return true;
  }
  if (expectation.kind != ExpectationKind::expression) {
    return judges == Judges::words;
  }
  const auto is_metric = [](const ResultName& name) {
    return name.name == "metric" || name.name == "single_device";
  };
  const auto& results = expectation.results;
  return judges == Judges::words ? std::none_of(results.begin(), results.end(), is_quantity)
                                 : std::none_of(results.begin(), results.end(), is_metric);
}

}  // namespace

std::vector<Judged> judge(const Rehearsal& rehearsal, Judges judges, const OtherCase& other_case) {
  std::vector<Judged> all;
  for (const Expectation& expectation : rehearsal.scenario->expectations) {
    if (!can_judge(expectation, judges)) {
      const char* by = judges == Judges::words ? "for `lockstep run`" : "for `lockstep verify`";
      all.push_back({expectation.text, false, false, by, expectation.place});
    } else if (!rehearsal.ran() && !rehearsal.refused()) {
      const bool decided = rehearsal.undecided.empty();
      all.push_back({expectation.text, false, false,
                     decided ? "the case did not run" : rehearsal.undecided, expectation.place});
    } else if (expectation.kind == ExpectationKind::expression) {
      all.push_back(judge_expression(expectation, rehearsal, other_case));
    } else {
      all.push_back(judge_word(expectation, rehearsal));
    }
  }
  return all;
}

std::vector<std::string> cases_named(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Expectation& expectation : scenario.expectations) {
    for (const ResultName& result : expectation.results) {
      const std::string& name = result.scenario_case;
      if (!name.empty() && name != scenario.name &&
          std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

}  // namespace lockstep::cli
