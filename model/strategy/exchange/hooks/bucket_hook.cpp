#include "model/strategy/exchange/hooks/bucket_hook.hpp"

namespace lockstep {

Program BucketHook::begin(Rank&) { co_return; }

Program BucketHook::finish(Rank&) { co_return; }

Ticket BucketHook::all_reduce(Rank& rank, GroupId group, const Slice& data, Ticket after,
                              SiteId site) {
  if (data.elements > 0) {
    messages_.push_back(data.bytes());
  }
  return rank.all_reduce(group, data, Reduction::sum, {communication_stream, {after}, site});
}

}  // namespace lockstep
