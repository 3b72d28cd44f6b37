#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "properties/finding.hpp"

namespace lockstep {

/// One setting that makes a scenario smaller: `trainer.devices` = `2`.
struct Setting {
  std::string name;
  std::string value;
  std::string text() const { return name + "=" + value; }
  bool operator==(const Setting&) const = default;
};

/// Whether the scenario with these settings still shows the defect. The caller runs it.
using StillShows = std::function<bool(std::span<const Setting>)>;

struct Shrunk {
  std::vector<Setting> settings;  ///< at most one a name, in the order of the candidates
  int64_t runs = 0;               ///< how often StillShows was asked
  bool finished = true;           ///< false: the bound on runs ended the search
  /// "--set trainer.devices=2 --set data.val.samples=1", or empty.
  std::string text() const;
};

/// Greedily finds a small scenario: for each name, in the order of first mention, the first value
/// that still shows the defect together with what was chosen before; again until nothing changes.
/// `candidates`: of one name the smallest value first.
Shrunk shrink(std::span<const Setting> candidates, const StillShows& still_shows,
              int64_t runs_max = 200);

/// True if code and statement are equal. Ranks and call numbers may differ.
bool same_defect(const Finding& left, const Finding& right);

}  // namespace lockstep
