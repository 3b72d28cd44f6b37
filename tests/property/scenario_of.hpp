#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace lockstep::test {

/// The first scenario of a drawn file, which must load: within a property.
Scenario scenario_of(const std::string& text);

}  // namespace lockstep::test
