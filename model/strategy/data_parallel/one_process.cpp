#include "model/strategy/data_parallel/one_process.hpp"

#include "model/strategy/exchange/coalesced.hpp"

namespace lockstep {

Program OneProcessStrategy::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  const Ticket copied = copy_each(rank, {part}, {whole}, {compute_stream, {}, site});
  co_await rank.settle(copied);
}

}  // namespace lockstep
