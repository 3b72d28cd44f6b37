// What trainer and user code ask of all ranks.
#include <span>

#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"

namespace lockstep {

Program Horovod::reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) {
  if (reduction != Reduction::sum && reduction != Reduction::avg) {
    throw ProgramException(site, "ValueError: HorovodStrategy.reduce takes mean and sum alone");
  }
  if (rank.world_size() == 1) {
    co_return;
  }
  const bool was_open = negotiator_ && negotiator_->is_running();
  co_await open(rank);
  co_await join_all(rank, site);
  TensorRequest request = request_of(RequestKind::all_reduce, NameSpace::unnamed, 0, data);
  request.reduction = reduction;
  co_await ask(rank, request, data, {}, site);
  if (!was_open) {
    co_await negotiator_->stop(rank);
  }
}

// Lightning joins where torch.distributed is initialised, which Horovod does not do.
Program Horovod::barrier(Rank&, SiteId) { co_return; }

Program Horovod::broadcast(Rank& rank, Slice data, int32_t root, SiteId site) {
  if (rank.world_size() > 1) {
    TensorRequest request = request_of(RequestKind::broadcast, NameSpace::unnamed, 0, data);
    request.root = root;
    co_await ask(rank, request, data, {}, site);
  }
}

Program Horovod::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  if (rank.world_size() == 1) {
    co_await DistributedStrategy::all_gather(rank, part, whole, site);
    co_return;
  }
  const bool was_open = negotiator_ && negotiator_->is_running();
  co_await open(rank);
  co_await join_all(rank, site);
  co_await ask(rank, request_of(RequestKind::all_gather, NameSpace::unnamed, 0, part), part, whole,
               site);
  if (!was_open) {
    co_await negotiator_->stop(rank);
  }
}

Task<Slice> Horovod::gather_rows(Rank& rank, Slice part, std::vector<int64_t> shape, SiteId site) {
  const bool was_open = negotiator_ && negotiator_->is_running();
  co_await open(rank);
  co_await join_all(rank, site);
  TensorRequest request = request_of(RequestKind::all_gather, NameSpace::unnamed, 0, part);
  request.shape = number_of_shape(std::span(shape).subspan(1));
  const Slice rows = co_await ask(rank, request, part, {}, site);
  if (!was_open) {
    co_await negotiator_->stop(rank);
  }
  co_return rows;
}

Task<Slice> Horovod::ask(Rank& rank, TensorRequest request, Slice data, Slice whole, SiteId site) {
  const bool was_open = negotiator_ && negotiator_->is_running();
  co_await open(rank);
  const Ticket ready = rank.event({compute_stream, {}, site});
  const int64_t handle = negotiator_->submit_unnamed(rank, request, data, whole, ready);
  const Slice gathered = co_await negotiator_->wait(rank, handle, site);
  if (!was_open) {
    co_await join_all(rank, site);
    co_await negotiator_->stop(rank);
  }
  co_return gathered;
}

// hvd.join: this rank supplies zeros until all others have come.
Program Horovod::join_all(Rank& rank, SiteId site) {
  const int64_t handle = negotiator_->submit_unnamed(
      rank, request_of(RequestKind::join, NameSpace::unnamed, 0, Slice{}), {}, {},
      rank.event({compute_stream, {}, site}));
  co_await negotiator_->wait(rank, handle, site);
}

TensorRequest Horovod::request_of(RequestKind kind, NameSpace space, int64_t number,
                                  const Slice& data) {
  TensorRequest request;
  request.name = {kind, space, number};
  request.dtype = data.dtype;
  request.elements = data.elements;
  return request;
}

}  // namespace lockstep
