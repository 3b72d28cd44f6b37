#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/expression/value.hpp"

namespace lockstep {

/// What one case of a sweep gave.
struct SweepRow {
  int64_t number = 0;  ///< of the case, from 1
  /// The keys that the case sets, each with its value as the user wrote it.
  std::vector<std::pair<std::string, std::string>> values;
  std::string verdict;             ///< "ok", "findings", "out_of_memory", "hangs", ..
  std::vector<std::string> codes;  ///< of errors and warnings, each once
  std::string message;             ///< why there is no prediction; empty: there is one
  std::string command;             ///< that runs the case alone
  /// Results by the names that expectations use. Without a prediction only those of the
  /// configuration.
  std::vector<std::pair<std::string, Value>> figures;
};

/// Whether a row of this verdict has a prediction.
constexpr bool is_predicted(std::string_view verdict) {
  return verdict == "ok" || verdict == "findings";
}

/// The part of a step that is communication which nothing hides: no result of expectations.
inline constexpr std::string_view exposed_share = "exposed_communication_share";

/// Names of figures that a row may have, in the order of their columns.
std::vector<std::string_view> figure_names();
/// "step_time_s", "memory.peak_bytes": with the unit.
std::string figure_key(std::string_view name);
/// Some value of the type of a figure; another for another `index`.
Value figure_stand_in(std::string_view name, int64_t index);

/// What a value means that is written like this: a number, a truth value, a quantity, else a text.
Value value_of_text(const std::string& text);

/// A figure, a key of the sweep, `case` or `verdict`; null: the row has no such value.
Value value_in(const SweepRow& row, std::string_view name);

}  // namespace lockstep
