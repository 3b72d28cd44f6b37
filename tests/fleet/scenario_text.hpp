#pragma once

#include <string>

#include "tests/property/bare_program.hpp"

namespace lockstep::test {

/// The bare program, with its defect, as a scenario that every world can run. What its steps leave
/// shows in the journal: hosts work for a time that depends on the values.
std::string scenario_text(const BareProgram& program);

}  // namespace lockstep::test
