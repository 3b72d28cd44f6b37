#include "model/strategy/sharded/deepspeed/deepspeed_stage0.hpp"

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

using namespace deepspeed_sites;

Program FlatReduction::finish(Rank& rank) {
  if (!synchronises_) {
    co_return;
  }
  // _get_gradients_for_reduction: all ranks reduce equally many elements.
  for (size_t index = 0; index < replica_->parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica_->parameters()[index];
    if (parameter.trainable && parameter.tensor.gradient.buffer == no_buffer) {
      ++without_gradient_[index];
    }
  }
  replica_->state().fill_missing_gradients(rank);
  std::vector<Slice> bucket;
  int64_t elements = 0;
  for (const Slice& gradient : replica_->state().gradients()) {
    if (gradient.buffer == no_buffer) {
      continue;
    }
    bucket.push_back(gradient);
    elements += gradient.elements;
    if (elements > bucket_elements_) {
      reduce(rank, std::exchange(bucket, {}));
      elements = 0;
    }
  }
  if (!bucket.empty()) {
    reduce(rank, bucket);
  }
}

void FlatReduction::reduce(Rank& rank, const std::vector<Slice>& gradients) {
  const SiteId site = site_id(fill_bucket);
  const Slice flat =
      rank.allocate(Purpose::communication, gradients.front().dtype, total_elements(gradients));
  const std::vector<Slice> parts = parts_of(flat, gradients);
  const Ticket packed = elementwise(rank, Kernel::scale, gradients, parts, 1.0 / rank.world_size(),
                                    {compute_stream, {}, site});
  reduced_ = rank.all_reduce(world_group, flat, Reduction::sum,
                             {communication_stream, {packed}, site_id(reduce_bucket_site)});
  exchanged_bytes_.push_back(flat.bytes());
  copy_each(rank, parts, gradients, {compute_stream, {reduced_}, site});
  rank.release(flat);
}

Program FlatReduction::settle(Rank& rank) {
  co_await rank.settle(std::exchange(reduced_, Ticket{}));
}

DeepSpeedReplicated::DeepSpeedReplicated(const TrainingPlan& plan, const DeepSpeedOptions& options)
    : ReplicatedDataParallel(plan, in_deepspeed_types(plan), gradients_reduced),
      options_(options) {}

Program DeepSpeedReplicated::setup(Rank& rank, Stage stage) {
  if (!replica().is_allocated()) {
    replica().allocate(rank, static_cast<uint64_t>(rank.id()));
    const SiteId site = site_id(send_states);
    const Ticket ready = rank.event({compute_stream, {}, site});
    Ticket last{};
    for (const Slice& parameter : replica().parameter_values()) {
      last = rank.broadcast(world_group, parameter, 0, {communication_stream, {ready}, site});
    }
    co_await rank.settle(last);
  }
  reduction_.reset();
  if (stage == Stage::fit) {
    replica().forget_optimizer(rank);
    reduction_.emplace(replica(), options_.reduce_bucket_size);
  }
}

std::vector<KnownDifference> DeepSpeedReplicated::known_differences() {
  std::vector<KnownDifference> known;
  add_statistics_kept_apart(replica(), plan().world_size, engine_sends_no_statistics, known);
  if (reduction_) {
    for (const auto& [parameter, steps] : reduction_->without_gradient()) {
      known.push_back(updated_without_gradient(
          replica().network().parameter_name(replica().parameters()[parameter].place), steps,
          false));
    }
  }
  return known;
}

// Clipping averages the norm over the ranks, which have the same gradients.
Program DeepSpeedReplicated::optimizer_step(Rank& rank, const UpdateOptions& asked) {
  const UpdateOptions options = options_.with_clipping(asked);
  if (options.clipping.algorithm != GradientClipping::Algorithm::none) {
    const SiteId site = site_id(share_norm);
    const Slice norm = rank.allocate(Purpose::communication, DType::fp32, 1);
    const Ticket ready = rank.event({compute_stream, {}, site});
    const Ticket shared =
        rank.all_reduce(world_group, norm, Reduction::sum, {communication_stream, {ready}, site});
    rank.event({compute_stream, {shared}, site});
    rank.release(norm);
  }
  check_device_of(plan().optimizers[options.optimizer], false, site_id(update));
  replica().optimizer_step(rank, options, site_id(update));
  transfers().end_step();
  co_return;
}

Task<Bytes> DeepSpeedReplicated::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                 SiteId site) {
  EngineCheckpoint saved;
  saved.is_parted = false;
  saved.barrier_is_all_reduce = plan().barrier_is_all_reduce;
  saved.compares_tags = options_.compares_tags;
  const ModelBytes all = model_bytes(replica(), computing_plan());
  const Bytes left_out = options_.saves_frozen ? Bytes{} : all.frozen;
  saved.model = rank.id() == 0 ? all.weights - left_out + all.optimizer_state : Bytes{};
  const Bytes written = co_await save_engine_checkpoint(rank, saved, request, site);
  co_await framework_barrier(rank, world_group, plan().barrier_is_all_reduce, site);
  co_return written;
}

}  // namespace lockstep
