#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"
#include "model/core/version.hpp"

namespace lockstep {

/// An argument that some versions alone of a strategy's class have.
struct ArgumentOfVersions {
  std::string_view class_name;  ///< today's
  std::string_view argument;
  Version since{};
  Version until{1000, 0, 0};  ///< the first version without it
};
/// Null: every version of the class has it.
const ArgumentOfVersions* versions_of_argument(std::string_view class_name,
                                               std::string_view argument);

/// What a version does otherwise than today's under one name, as arguments of our strategy:
/// "wide_mixed_precision=true". Empty: nothing.
std::vector<std::string_view> arguments_of_version(std::string_view strategy,
                                                   const Version& lightning);

/// Whether the version calls torch's clip_grad_norm_ under a strategy whose precision plugin
/// refuses it today.
bool clips_shards_by_norm(std::string_view strategy, const Version& lightning);

/// Who decides how long the calls of a process group may take.
struct TimeLimitSituation {
  std::string_view class_name{};   ///< of the strategy; empty: a program without a Trainer
  Version lightning{};             ///< of the Trainer
  std::optional<Version> torch{};  ///< where the scenario says it
  bool gloo = false;
  bool is_none = false;  ///< the strategy is given `timeout=None`
};
/// The limit where nothing in the scenario says it.
Time default_time_limit(const TimeLimitSituation& situation);

}  // namespace lockstep
