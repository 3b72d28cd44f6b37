#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace lockstep::cli {

/// The argument as a shell takes it: quoted where it must be.
std::string shell_word(const std::string& argument);

/// Arguments that load the scenario again: `FILE:CASE --set KEY=VALUE`.
std::string shell_words(const Scenario& scenario);

}  // namespace lockstep::cli
