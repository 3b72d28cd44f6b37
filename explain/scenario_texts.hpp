#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

/// A file of the scenario library, built into the program.
struct ScenarioText {
  std::string_view path;  ///< "scenarios/f1-averaged.yaml"
  std::string_view text;
};

std::span<const ScenarioText> scenario_texts();

}  // namespace lockstep::cli
