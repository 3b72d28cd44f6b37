#include "model/strategy/exchange/hooks/post_local_sgd.hpp"

#include <algorithm>

#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace hook_sites;

// new_subgroups: a new_group of each node, of all ranks, one after the other.
Program PostLocalSgdHook::begin(Rank& rank) {
  if (is_global() || !options_.reduces_gradients_locally || subgroup_) {
    co_return;
  }
  const int32_t ranks = rank.place().local_world_size;
  for (int32_t first = 0; first < rank.world_size(); first += ranks) {
    std::vector<int64_t> members;
    for (int32_t member = first; member < std::min(first + ranks, rank.world_size()); ++member) {
      members.push_back(member);
    }
    const Rank::NewGroup made =
        rank.new_group(world_group, members, {communication_stream, {}, site_id(make_subgroups)});
    co_await rank.settle(made.ready);
    if (first <= rank.id() && rank.id() < first + ranks) {
      subgroup_ = made.group;
    }
  }
}

Ticket PostLocalSgdHook::start(Rank& rank, const FullBucket& bucket) {
  const bool global = is_global();
  iteration_ += bucket.is_last ? 1 : 0;
  if (!global && !options_.reduces_gradients_locally) {
    return bucket.filled;
  }
  const int32_t ranks = global ? rank.world_size() : rank.place().local_world_size;
  const Ticket divided = elementwise(rank, Kernel::scale, {}, {bucket.flat}, 1.0 / ranks,
                                     {bucket.filled}, site_id(prepare));
  return all_reduce(rank, global ? world_group : subgroup_.value_or(world_group), bucket.flat,
                    divided, site_id(reduce_gradients));
}

}  // namespace lockstep
