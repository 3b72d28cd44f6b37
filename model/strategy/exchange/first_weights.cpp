#include "model/strategy/exchange/first_weights.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

namespace {

constexpr std::string_view not_broadcast = "parameters were not broadcast from rank 0";

}  // namespace

bool sends_no_first_weights(const StrategyArguments& arguments) {
  const auto is_false = [&arguments](std::string_view name) {
    const StrategyArguments::Value* value = arguments.find(std::string(name));
    const bool* sends = value == nullptr ? nullptr : std::get_if<bool>(value);
    return sends != nullptr && !*sends;  // a value of another type is a problem of its own
  };
  return is_false(init_sync_argument) || is_false(broadcast_parameters_argument);
}

std::optional<KnownDifference> unsent_first_weights(const Network& network,
                                                    const std::string& setting,
                                                    const std::string& remedy) {
  const auto places = network.parameters();
  const bool draws = std::ranges::any_of(places, [&network](const ParameterPlace place) {
    return network.parameter(place).initial == nullptr;
  });
  if (!draws) {
    return std::nullopt;
  }
  return KnownDifference{
      fmt::format("{} ({}), and each rank has drawn its own", not_broadcast, setting), remedy,
      DifferenceKind::of_replicas};
}

bool is_of_first_weights(const KnownDifference& known) {
  return known.cause.starts_with(not_broadcast);
}

}  // namespace lockstep
