#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/placed.hpp"
#include "model/scenario/statement.hpp"

namespace lockstep {

/// The statements of one hook of the LightningModule, of a callback, or of `main`.
struct Hook {
  std::string name;
  std::vector<Statement> statements;
  SourcePlace place{};
};

/// The user's LightningModule and script.
struct ProgramSpec {
  Given<bool> automatic_optimization;
  std::vector<Hook> hooks;      ///< in the order of the file, `main` among them
  std::vector<Hook> functions;  ///< what `call` runs, in the order of the file
  SourcePlace place{};

  /// The hook of this name, or null where the user has not written it.
  const Hook* find(std::string_view name) const;
  /// The function of this name, or null.
  const Hook* find_function(std::string_view name) const;
};

}  // namespace lockstep
