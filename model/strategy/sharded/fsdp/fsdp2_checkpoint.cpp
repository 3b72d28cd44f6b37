// Checkpoints of FSDP2 (torch/distributed/checkpoint/state_dict.py).
#include <algorithm>

#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"

namespace lockstep {

Task<WrittenBytes> FullyShard2::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                SiteId site) {
  HostCopy host;
  if (options_.saves_in_parts) {
    copy_pieces(rank, request, host);
  } else {
    HostCopy* const copy = rank.id() == 0 ? &host : nullptr;
    const size_t parameters = replica_.parameters().size();
    for (size_t index = 0; index < parameters; ++index) {
      co_await gather_tensors(rank, index, 1, copy);
    }
    for (size_t optimizer = 0; optimizer < plan().optimizers.size(); ++optimizer) {
      const int tensors = request.weights_only ? 0 : checkpoint().state_tensors_of(optimizer);
      for (size_t index = 0; index < parameters; ++index) {
        co_await gather_tensors(rank, index, checkpoint().updates(optimizer, index) ? tensors : 0,
                                copy);
      }
    }
  }
  co_await host.settle(rank);
  const WrittenBytes written =
      co_await write_checkpoint(rank, request, options_.saves_in_parts, site);
  host.release(rank);
  co_return written;
}

// Every tensor by itself: the largest part, padded, of every rank.
Program FullyShard2::gather_tensors(Rank& rank, size_t parameter, int tensors, HostCopy* host) {
  if (unit_of_[parameter] == no_unit) {  // whole on every rank
    if (host != nullptr && tensors > 0) {
      host->add(rank, replica_.parameters()[parameter].tensor.value,
                site_id(fsdp2_sites::gather_state));
    }
    co_return;
  }
  for (int tensor = 0; tensor < tensors; ++tensor) {
    co_await gather_for_file(rank, checkpoint().row_part_elements(parameter, 0),
                             elements_of(parameter), host);
  }
}

// A part is copied to host memory as it is stored; offloaded ones are there.
void FullyShard2::copy_pieces(Rank& rank, const CheckpointRequest& request, HostCopy& host) {
  const SiteId site = site_id(fsdp2_sites::exchange_plans);
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      if (options_.offload) {
        continue;
      }
      host.add(rank, piece.tensor.value, site);
      for (const Slice& state : piece.tensor.state) {
        if (!request.weights_only) {
          host.add(rank, state, site);
        }
      }
    }
  }
}

}  // namespace lockstep
