#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <string>

#include "tests/property/training_case.hpp"

namespace lockstep::test {

/// A small training as a scenario: what the generated training has, and what real kernels add.
struct TrainingScenario {
  TrainingCase training;
  int32_t layers = 0;
  int32_t optimizer = 0;
  int32_t precision = 0;
  int32_t hook = 0;
  int32_t fault = 0;  ///< one a case at most: there is no flaw beside it
  int32_t fault_rank = 0;
  int32_t fault_call = 1;
  bool validates = false;
  int32_t seed = 0;
};

rc::Gen<TrainingScenario> training_scenarios();

std::string scenario_text(const TrainingScenario& scenario);

// What a case counts as in the distribution.
std::string layers_name(const TrainingScenario& scenario);
std::string optimizer_name(const TrainingScenario& scenario);
std::string precision_name(const TrainingScenario& scenario);
std::string hook_name(const TrainingScenario& scenario);
/// The fault or the flaw that is really there.
std::string defect_name(const TrainingScenario& scenario);

std::ostream& operator<<(std::ostream& out, const TrainingScenario& scenario);

}  // namespace lockstep::test
