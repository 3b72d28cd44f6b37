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

Place place_of_other(const Place& own, const RanksOfNodes& nodes, int32_t other) {
  const int32_t alike = own.local_world_size;
  const PositionOnNode position = nodes.empty()
                                      ? PositionOnNode{other / alike, other % alike, alike}
                                      : position_on_node(nodes, other);
  Place place = own;
  place.rank = RankId{static_cast<uint32_t>(other)};
  place.node = position.node;
  place.local_rank = position.local_rank;
  place.local_world_size = position.local_world_size;
  return place;
}

}  // namespace lockstep
