#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/expression/expression.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

enum class ExpectationKind : uint8_t {
  no_hang,
  hang,
  no_findings,
  finding,
  no_finding,
  refused,
  raises,
  assertion,
  expression
};

/// One result that an expectation names, such as `ddp.breakdown.compute` or `metric val/f1`.
struct ResultName {
  std::string placeholder;    ///< the name that stands for it in the expression
  std::string scenario_case;  ///< another case of the file, or empty for this one
  std::string name;           ///< "step_time", "breakdown.compute", "metric", "transfers"
  std::string key;            ///< of `metric` and of `transfers`
  SourcePlace place{};
};

/// The allowance of `left == right +- allowance`.
struct Tolerance {
  std::optional<double> fraction;      ///< of the right side: `+- 5 %`
  std::optional<Expression> absolute;  ///< a constant quantity: `+- 2 ms`
};

/// Where a finding must be: `at data.train.batches`, `at scenario.yaml:17`, `at model.py:41`.
struct ExpectedPlace {
  std::string text;  ///< as written
  /// The lines that the value of a key takes up. Empty: only `text` is compared.
  struct Lines {
    std::string file;
    int first = 0;
    int last = 0;
  };
  std::vector<Lines> lines;
};

/// What level a finding must have.
enum class ExpectedLevel : uint8_t { any, warning, note };

/// An expectation: a word, or an expression over results that gives a bool.
struct Expectation {
  ExpectationKind kind = ExpectationKind::no_hang;
  std::string text;                ///< as written
  std::vector<std::string> codes;  ///< of `finding` (any of them is enough), `no_finding`
  ExpectedLevel level = ExpectedLevel::any;
  std::optional<ExpectedPlace> at;       ///< of `finding`
  std::vector<int64_t> on_ranks;         ///< of `finding`: those that it must name; empty: any
  std::optional<Expression> expression;  ///< without a tolerance
  std::optional<Expression> left;        ///< with one: `left == right`
  std::optional<Expression> right;
  std::optional<Tolerance> tolerance;
  std::vector<ResultName> results;
  std::optional<int64_t> rank;  ///< absent: every rank
  SourcePlace place{};
};

/// Settings of `verify`.
struct VerifySpec {
  std::vector<Placed<int64_t>> world_sizes;
  Given<int64_t> max_schedules;
  Given<std::string> numerics;  ///< "auto", "true", "false"
  Given<bool> single_device;
  Given<bool> all_steps;  ///< simulate also those that repeat earlier ones
  Given<bool> all_ranks;  ///< simulate also those that do what others do
  struct Ignored {
    std::string code;
    std::string reason;
    SourcePlace place{};
  };
  std::vector<Ignored> ignore;
  SourcePlace place{};
};

}  // namespace lockstep
