#pragma once

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Whether a finding is what an expectation of kind `finding` or `no_finding` names: its code,
/// level, place and ranks. `sites` are those of the run.
bool names_finding(const Expectation& expectation, const Finding& finding, const Sites& sites);

/// Whether a finding says no more than that ranks have raised. It has no code of its own.
bool tells_a_raise(const Finding& finding);
/// Whether a finding says that a statement `assert` is false.
bool tells_an_assertion(const Finding& finding);

/// Whether the scenario expects this finding, so that it is a success of `test`.
bool is_expected(const Rehearsal& rehearsal, const Finding& finding);

}  // namespace lockstep::cli
