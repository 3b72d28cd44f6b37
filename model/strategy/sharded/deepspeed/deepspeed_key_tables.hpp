#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

/// Paths of keys in DeepSpeed's own configuration, as "zero_optimization.stage".
using DeepSpeedKeys = std::vector<std::string_view>;

struct UnmodelledDeepSpeedKey {
  /// What asks for nothing, beside null.
  enum class Off : uint8_t {
    by_value,    ///< false, a number up to 1, an empty list
    by_enabled,  ///< the same, and the whole section unless its `enabled` is true
    by_absence,  ///< nothing that is there
    by_true,     ///< it is on by default
  };
  std::string_view name;  ///< of the key, or of a group
  std::string_view instead = "";
  Off off = Off::by_value;
};

/// Those that decide what is simulated.
const DeepSpeedKeys& read_deepspeed_keys();
/// What changes neither calls nor memory here, or what Lightning fills in; with all below them.
const DeepSpeedKeys& ignored_deepspeed_keys();
/// What says so only where it asks for something.
const std::vector<UnmodelledDeepSpeedKey>& unmodelled_deepspeed_keys();

}  // namespace lockstep
