#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/network/network.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/known_difference.hpp"

namespace lockstep {

/// The arguments that send rank 0's parameters to all at the start: DistributedDataParallel's, and
/// that which stands for hvd.broadcast_parameters.
inline constexpr std::string_view init_sync_argument = "init_sync";
inline constexpr std::string_view broadcast_parameters_argument = "broadcast_parameters";
/// Whether one of them is false.
bool sends_no_first_weights(const StrategyArguments& arguments);
/// `prepare` gives it to such a strategy where the scenario says `seed_everything`: then a script
/// seeds all ranks alike, and they draw the same first weights.
inline constexpr std::string_view seeded_alike_argument = "seed_everything";

/// Of a strategy that does not send rank 0's parameters before the first step, because of
/// `setting` ("init_sync: false"), although ranks draw their own. Nothing where `network` draws
/// none: then all of them are given.
std::optional<KnownDifference> unsent_first_weights(const Network& network,
                                                    const std::string& setting,
                                                    const std::string& remedy);
/// Whether it is such a difference.
bool is_of_first_weights(const KnownDifference& known);

}  // namespace lockstep
