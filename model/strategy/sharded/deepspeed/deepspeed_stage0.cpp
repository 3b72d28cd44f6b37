#include "model/strategy/sharded/deepspeed/deepspeed_stage0.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

using namespace deepspeed_sites;

namespace {

LossScaler::Options of_replicas(LossScaler::Options options) {
  options.is_of_replicas = true;
  return options;
}

}  // namespace

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
    constexpr int64_t bucket_elements = 500'000'000;  // whatever `reduce_bucket_size` says
    if (elements > bucket_elements) {
      reduce(rank, std::exchange(bucket, {}));
      elements = 0;
    }
  }
  if (!bucket.empty()) {
    reduce(rank, bucket);
  }
}

// allreduce_bucket: by default the sum is divided, so that it may overflow in 16 bits where its
// mean would not.
void FlatReduction::reduce(Rank& rank, const std::vector<Slice>& gradients) {
  const SiteId site = site_id(fill_bucket);
  const DType own = gradients.front().dtype;
  const Slice flat = rank.allocate(Purpose::communication, own, total_elements(gradients));
  const std::vector<Slice> parts = parts_of(flat, gradients);
  Ticket packed = copy_each(rank, gradients, parts, {compute_stream, {}, site});
  Slice travels = flat;
  if (communicated_.value_or(own) != own) {
    travels = rank.allocate(Purpose::communication, *communicated_, flat.elements);
    packed = elementwise(rank, Kernel::cast, {flat}, {travels}, 0, {compute_stream, {}, site});
  }
  if (const double before = division_.before_sum(rank.world_size()); before != 1) {
    packed = elementwise(rank, Kernel::scale, {}, {travels}, before, {compute_stream, {}, site});
  }
  reduced_ = rank.all_reduce(world_group, travels, Reduction::sum,
                             {communication_stream, {packed}, site_id(reduce_bucket_site)});
  exchanged_bytes_.push_back(travels.bytes());
  rank.event({compute_stream, {reduced_}, site});
  if (const double behind = division_.behind_sum(rank.world_size()); behind != 1) {
    elementwise(rank, Kernel::scale, {}, {travels}, behind, {compute_stream, {}, site});
  }
  if (travels.dtype != own) {
    elementwise(rank, Kernel::cast, {travels}, {flat}, 0, {compute_stream, {}, site});
    rank.release(travels);
  }
  copy_each(rank, parts, gradients, {compute_stream, {}, site});
  rank.release(flat);
}

Program FlatReduction::settle(Rank& rank) {
  co_await rank.settle(std::exchange(reduced_, Ticket{}));
}

DeepSpeedReplicated::DeepSpeedReplicated(const TrainingPlan& plan, const DeepSpeedOptions& options)
    : ReplicatedDataParallel(plan, in_deepspeed_types(plan), gradients_reduced),
      options_(options),
      scaler_(of_replicas(options.loss_scale)) {}

bool DeepSpeedReplicated::has_copy() const {
  return plan().is_fitted && computing_plan().parameter_dtype != DType::fp32;
}

// engine.py, backward: from 0.18.3 on only what derives from ZeROOptimizer scales the loss (pull
// request 8393 of DeepSpeed), while the optimizer divides gradients by the scale as before.
bool DeepSpeedReplicated::scales_loss() const {
  constexpr Version first_that_does_not{0, 18, 3};
  return is_scaled() && computing_plan().deepspeed < first_that_does_not;
}

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
    if (has_copy()) {
      copy_.emplace(replica());
      copy_->allocate(rank);
    }
  }
  reduction_.reset();
  if (stage == Stage::fit) {
    replica().forget_optimizer(rank);
    if (copy_) {
      copy_->forget_optimizer(rank);
    }
    reduction_.emplace(replica(), options_.communication_data_type, options_.division);
  }
}

StepOptions DeepSpeedReplicated::for_backward(const StepOptions& options) {
  StepOptions scaled = options;
  if (scales_loss()) {
    scaled.loss_factor *= loss_scale_of(scaler_);
  }
  return scaled;
}

// 16 bits

void DeepSpeedReplicated::add_of_copy(std::vector<KnownDifference>& known) const {
  for (KnownDifference& each : skipped_steps(scaler_)) {
    known.push_back(std::move(each));
  }
  if (skipped_ > 0) {
    known.push_back(skipped_without_scale(skipped_));
  }
  if (is_scaled() && !scales_loss()) {
    known.push_back(
        {fmt::format("at stage 0 DeepSpeed from 0.18.3 on divides gradients by the "
                     "loss scale, which is {} now, and does not multiply the loss by it",
                     scaler_.scale()),
         "use stage 1, bf16-mixed, or DeepSpeed 0.18.2"});
  }
  if (unlike_ > 0) {
    known.push_back({fmt::format("gradients of {} step{} were divided by twice the scale of their "
                                 "loss, because the scale doubles before them",
                                 unlike_, unlike_ == 1 ? "" : "s"),
                     "use stage 1, or a fixed loss_scale"});
  }
  const OptimizerPlan& optimizer = plan().optimizers.front();
  if (has_betas(optimizer) || optimizer.weight_decay != 0) {
    known.push_back(
        {"the engine starts with a step of gradients that are 0: weight decay acts "
         "once more, and Adam corrects its moments as in a step later",
         "use stage 1, whose optimizer does not"});
  }
}

// fp16/fused_optimizer.py and unfused_optimizer.py, step: reduced gradients are those of all ranks,
// so that nobody asks the others.
Program DeepSpeedReplicated::step_of_copy(Rank& rank, const UpdateOptions& options) {
  MasterCopy::Step step{options, 1, site_id(update)};
  copy_->make_state(rank, step);
  const bool overflowed = !(co_await copy_->is_finite(rank, site_id(share_overflow)));
  if (is_scaled()) {
    const double before = scaler_.scale();
    scaler_.note_step(overflowed);
    step.loss_scale = scaler_.scale();  // the new one, although the loss had the one before
    unlike_ += step.loss_scale > before && scales_loss() ? 1 : 0;
  } else {
    skipped_ += overflowed ? 1 : 0;
  }
  if (overflowed) {
    copy_->drop_gradients(rank);
  } else {
    copy_->update(rank, step);
  }
  transfers().end_step();
}

std::vector<HeldParameter> DeepSpeedReplicated::held_parameters() {
  if (!copy_) {
    return ReplicatedDataParallel::held_parameters();
  }
  std::vector<HeldParameter> held = copy_->held_parameters();
  for (size_t index = 0; index < replica().parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica().parameters()[index];
    if (!parameter.trainable) {
      held.push_back({index, 0, parameter.tensor.value});
    }
  }
  std::ranges::sort(held, {}, &HeldParameter::parameter);
  return held;
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
  if (copy_) {
    add_of_copy(known);
  }
  return known;
}

// Clipping averages the norm over the ranks, which have the same gradients.
Program DeepSpeedReplicated::optimizer_step(Rank& rank, const UpdateOptions& asked) {
  const UpdateOptions options = options_.with_clipping(asked);
  check_device_of(plan().optimizers[options.optimizer], false, site_id(update));
  if (copy_) {
    co_await step_of_copy(rank, options);
    co_return;
  }
  if (options.clipping.algorithm != GradientClipping::Algorithm::none) {
    const SiteId site = site_id(share_norm);
    const Slice norm = rank.allocate(Purpose::communication, DType::fp32, 1);
    const Ticket ready = rank.event({compute_stream, {}, site});
    const Ticket shared =
        rank.all_reduce(world_group, norm, Reduction::sum, {communication_stream, {ready}, site});
    rank.event({compute_stream, {shared}, site});
    rank.release(norm);
  }
  replica().optimizer_step(rank, options, site_id(update));
  transfers().end_step();
  co_return;
}

Task<WrittenBytes> DeepSpeedReplicated::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                        SiteId site) {
  EngineCheckpoint saved;
  saved.is_parted = false;
  saved.barrier_is_all_reduce = plan().barrier_is_all_reduce;
  saved.compares_tags = options_.compares_tags;
  const ModelBytes all = model_bytes(replica(), computing_plan());
  const Bytes left_out = options_.saves_frozen ? Bytes{} : all.frozen;
  const Bytes kept = copy_ ? copy_->bytes() : all.optimizer_state;
  saved.model = rank.id() == 0 ? all.weights - left_out + kept : Bytes{};
  const Bytes written = co_await save_engine_checkpoint(rank, saved, request, site);
  co_await framework_barrier(rank, world_group, plan().barrier_is_all_reduce, site);
  co_return written;
}

}  // namespace lockstep
