#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "properties/diagnosis/remedy.hpp"
#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What explains a finding: a statement or key of the scenario, with the words below its mark.
struct FindingCause {
  SiteId site{};
  std::string label;
  std::optional<GuardedReturn> leaves{};  ///< a `return` that some ranks take
  /// A branch that lets ranks change their weights differently: its condition.
  std::string branch{};
  bool steps_if_true = false;  ///< an optimizer steps where that condition holds
  /// Ranks are set up differently: how, and what makes them equal.
  std::string difference{};
  std::string equal{};
};

/// Where the sites of the finding do not say it themselves: the branch or `return` before a call
/// that some ranks lack, uneven data, the fault, the work that makes a rank late, the statement
/// that lets weights differ.
std::optional<FindingCause> cause_of(const OneRun& run, const Finding& finding);

/// Whether a site stands in the scenario.
bool has_line(const OneRun& run, SiteId id);
/// The first of these places that the scenario has; null: not given. None: no_site.
SiteId first_written(std::initializer_list<const SourcePlace*> places);

/// The place of a key that may be absent.
template <class Given>
const SourcePlace* place_of_key(const Given& given) {
  return given ? &given->place : nullptr;
}

}  // namespace lockstep::cli
