#include "model/user_program/rank_names.hpp"

namespace lockstep {

std::optional<Value> name_of_rank(std::string_view name, const Place& place) {
  if (name == "rank") {
    return Value(place.rank.value);
  }
  if (name == "world_size") {
    return Value(place.world_size);
  }
  if (name == "local_rank") {
    return Value(place.local_rank);
  }
  if (name == "node_rank") {
    return Value(place.node);
  }
  return name == "is_global_zero" ? std::optional(Value(place.rank.value == 0)) : std::nullopt;
}

}  // namespace lockstep
