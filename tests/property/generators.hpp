#pragma once

#include <rapidcheck.h>

#include "tests/property/bare_program.hpp"
#include "tests/property/training_case.hpp"

namespace lockstep::test {

/// Bare programs of one to four ranks; about two in five carry a defect.
rc::Gen<BareProgram> bare_programs();

/// Small trainings by ddp, dp and single device; about two in five carry a defect.
rc::Gen<TrainingCase> training_cases();

}  // namespace lockstep::test
