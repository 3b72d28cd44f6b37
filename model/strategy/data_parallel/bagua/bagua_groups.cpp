#include "model/strategy/data_parallel/bagua/bagua_groups.hpp"

#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"

namespace lockstep {

Program BaguaGroups::make(Rank& rank, bool hierarchical) {
  const Place& place = rank.place();
  const int32_t of_node = hierarchical ? place.local_world_size : 1;
  ranks_ = rank.world_size() / of_node;
  stride_ = of_node;
  behind_leader_ = of_node;
  leader_ = rank.id() - rank.id() % of_node;
  index_ = rank.id() / of_node;
  takes_part_ = rank.id() == leader_;
  if (of_node == 1 || ranks_ == 1) {
    co_return;  // the world is the group of the one or of the other
  }
  const CommunicationOptions options{communication_stream, {}, site_id(bagua_sites::make_groups)};
  const Rank::NewGroup node = rank.split_group(world_group, ColorRule{of_node}, options);
  co_await rank.settle(node.ready);
  node_ = node.group;
  const Rank::NewGroup leaders = rank.split_group(world_group, ColorRule{of_node, 0}, options);
  co_await rank.settle(leaders.ready);
  group_ = leaders.group;
}

Ticket BaguaGroups::reduce_to_leader(Rank& rank, const Slice& data, bool average,
                                     Ticket ready) const {
  if (!has_nodes()) {
    return ready;
  }
  return rank.reduce(node_, data, average ? Reduction::avg : Reduction::sum, leader_,
                     {communication_stream, {ready}, site_id(bagua_sites::reduce_to_leader)});
}

Ticket BaguaGroups::send_from_leader(Rank& rank, const Slice& data, Ticket ready) const {
  if (!has_nodes()) {
    return ready;
  }
  return rank.broadcast(node_, data, leader_,
                        {communication_stream, {ready}, site_id(bagua_sites::send_from_leader)});
}

}  // namespace lockstep
