#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

/// What a cloud asks for an hour of one of its nodes, without contract or discount. The amount is
/// for showing and multiplying only: never for the simulation.
struct ListPrice {
  std::string_view cluster;  ///< the preset: "p5.48xlarge"
  double usd_per_node_hour = 0;
  std::string_view terms;   ///< "on demand, Linux, us-east-1"
  std::string_view source;  ///< with the date of the list
};

std::span<const ListPrice> list_prices();
/// Nothing where no published price is known.
std::optional<ListPrice> list_price_of(std::string_view cluster);

}  // namespace lockstep
