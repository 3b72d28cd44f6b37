#pragma once

#include <functional>
#include <vector>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Expectations that a command can judge: `run` quantities, `verify` words and metrics, `test` all.
enum class Judges : uint8_t { quantities, words, all };

/// Another case of the same file that has run; null when it has not.
using OtherCase = std::function<const Rehearsal*(const std::string& name)>;

/// Each expectation of the scenario, in its order.
std::vector<Judged> judge(const Rehearsal& rehearsal, Judges judges, const OtherCase& other_case);

/// The cases that the expectations of a scenario name.
std::vector<std::string> cases_named(const Scenario& scenario);

}  // namespace lockstep::cli
