#include "model/strategy/local_model/forward_of.hpp"

#include "model/network/mixture.hpp"

namespace lockstep {

Task<Ticket> forward_of(Rank& rank, Replica& replica, const Batch& batch,
                        const StepOptions& options) {
  if (!are_experts_divided(replica.network()) && !replica.plan().synchronises_batch_norm) {
    const Ticket ready = replica.forward(rank, batch, options);
    co_await await_routing(rank, replica, ready);
    co_return ready;
  }
  replica.begin_forward(rank, batch, options);
  for (size_t layer = 0; layer < replica.network().layers.size(); ++layer) {
    co_await rank.settle(replica.announce_tokens(rank, layer, options));
    replica.forward_layer(rank, layer, options);
    if (const std::optional<Ticket> gathered = replica.take_gathered()) {
      co_await rank.settle(*gathered);
    }
  }
  const Ticket ready = replica.end_forward(rank, options);
  co_await await_routing(rank, replica, ready);
  co_return ready;
}

Program await_routing(Rank& rank, Replica& replica, Ticket ready) {
  if (replica.routes_tokens()) {
    co_await rank.settle(ready);
    replica.read_routing(rank);
  }
}

}  // namespace lockstep
