#include "model/strategy/strategy.hpp"

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

Task<bool> Strategy::join(Rank&, MirroredIterations&) { co_return false; }

Program Strategy::teardown(Rank&) { co_return; }

Program Strategy::complete_gradients(Rank&, const UpdateOptions&) { co_return; }

Program Strategy::serve(Rank&) { co_return; }

Program Strategy::dismiss_servers(Rank&) { co_return; }

Replica& Strategy::copy(size_t) { return replica(); }

std::vector<HeldParameter> Strategy::held_parameters() {
  std::vector<HeldParameter> held;
  for (const Slice& value : replica().parameter_values()) {
    held.push_back({held.size(), 0, value});
  }
  return held;
}

Task<WrittenBytes> Strategy::save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) {
  const bool writes = rank.id() == 0;
  const Bytes bytes = writes ? model_bytes(replica(), replica().plan()).of(request) : Bytes{};
  co_await write_file(rank, bytes, request, 1, site);
  co_return bytes;
}

Task<Slice> Strategy::gather_rows(Rank&, Slice part, std::vector<int64_t>, SiteId) {
  ensure(false, "a strategy that gathers rows");
  co_return part;
}

Program Strategy::read_state_dict(Rank&, SiteId) { co_return; }

Program Strategy::begin_whole_parameters(Rank&) { co_return; }

Program Strategy::end_whole_parameters(Rank&) { co_return; }

Slice Strategy::loss_of(size_t) const { return loss(); }

}  // namespace lockstep
