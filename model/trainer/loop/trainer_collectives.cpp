#include "model/trainer/loop/trainer_collectives.hpp"

namespace lockstep {

namespace {

/// Of a pickled path such as /home/somebody/project/lightning_logs/version_0: the scenario does not
/// say where it is.
constexpr int64_t typical_log_dir_bytes = 64;

}  // namespace

TrainerCollectives::TrainerCollectives(Rank& rank, const TrainerMembership& membership,
                                       Strategy& strategy, StreamOrder& streams,
                                       TensorStore& tensors)
    : rank_(rank),
      membership_(membership),
      strategy_(strategy),
      streams_(streams),
      tensors_(tensors) {}

Program TrainerCollectives::barrier(SiteId site) {
  streams_.hand_over_compute();
  co_await strategy_.barrier(rank_, site);
}

Program TrainerCollectives::broadcast(TensorPointer data, SiteId site) {
  streams_.hand_over_compute();
  co_await strategy_.broadcast(rank_, data->slice, 0, site);
}

// torch/distributed/distributed_c10d.py, broadcast_object_list of one object.
Program TrainerCollectives::broadcast_object(TensorPointer object, SiteId site) {
  const TensorPointer size = tensor_of(object->slice.elements);
  streams_.hand_over_compute();
  co_await strategy_.broadcast(rank_, size->slice, 0, site);
  co_await strategy_.broadcast(rank_, object->slice, 0, site);
}

Program TrainerCollectives::broadcast_size(SiteId site) {
  const TensorPointer size = tensors_.make(DType::int64, {1});
  streams_.hand_over_compute();
  co_await strategy_.broadcast(rank_, size->slice, 0, site);
}

// trainer.log_dir, asked for by the set-up of the profiler: broadcast_object_list sends the size of
// the pickled path, then the path.
Program TrainerCollectives::broadcast_log_dir(SiteId site) {
  if (!distributed()) {
    co_return;
  }
  co_await broadcast_size(site);
  const TensorPointer path = object_tensor(typical_log_dir_bytes);
  co_await broadcast(path, site);
}

// strategies/parallel.py: a sum of 0 and 1, with the barrier of reduce.
Task<bool> TrainerCollectives::reduce_boolean_decision(bool decision, bool all, SiteId site) {
  if (!distributed()) {
    co_return decision;
  }
  const TensorPointer votes = tensors_.make(DType::int64, {});
  rank_.write(votes->slice, Values::of(DType::int64, {decision ? 1.0 : 0.0}));
  streams_.hand_over_compute();
  co_await strategy_.reduce(rank_, votes->slice, Reduction::sum, site);
  const int64_t sum = rank_.read(votes->slice).integer(0);
  co_return all ? sum == membership_.trainers : sum > 0;
}

Program TrainerCollectives::reduce_length(int64_t length, SiteId site) {
  const TensorPointer data = tensors_.make(DType::int64, {});
  rank_.write(data->slice, Values::of(DType::int64, {static_cast<double>(length)}));
  streams_.hand_over_compute();
  co_await strategy_.reduce(rank_, data->slice, Reduction::sum, site);
  // lightning/fabric/utilities/data.py, has_len_all_ranks
  if (length == 0 && rank_.read(data->slice).integer(0) > 0) {
    throw ProgramException(site,
                           "`DataLoader` within local rank has zero length. Please make sure that "
                           "it returns at least 1 batch.");
  }
}

TensorPointer TrainerCollectives::object_tensor(int64_t bytes) {
  return tensors_.make(DType::uint8, {bytes});
}

TensorPointer TrainerCollectives::tensor_of(int64_t value) {
  TensorPointer made = tensors_.make(DType::int64, {1});
  rank_.write(made->slice, Values::of(DType::int64, {static_cast<double>(value)}));
  return made;
}

}  // namespace lockstep
