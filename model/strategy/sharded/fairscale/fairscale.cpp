#include "model/strategy/sharded/fairscale/fairscale.hpp"

#include "model/strategy/exchange/object_exchange.hpp"
#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/sharded/fairscale/fairscale_sites.hpp"
#include "model/strategy/sharded/norm_of_own_part.hpp"

namespace lockstep {

namespace {
constexpr std::string_view gradients_of_owners = "gradients_reduced";
constexpr std::string_view parameters_from_owners = "parameters_sent";
}  // namespace

ShardedDataParallel::ShardedDataParallel(const TrainingPlan& plan,
                                         const ShardedDataParallelOptions& options)
    : ReplicatedDataParallel(plan, plan, gradients_of_owners), options_(options) {}

// Construction

std::vector<OwnedSize> ShardedDataParallel::owned_sizes() {
  std::vector<OwnedSize> sizes;
  for (const Replica::Parameter& parameter : replica().parameters()) {
    sizes.push_back(
        {replica().network().parameter(parameter.place).elements(), parameter.trainable});
  }
  return sizes;
}

std::vector<int64_t> ShardedDataParallel::kinds_of_ranks(const RanksOfRun& run) {
  ShardKinds kinds(run.all);
  kinds.set_apart(owners_in_order(owned_sizes(), run.all));
  return kinds.kinds();
}

// 1. Every parameter gets an owner; the trainable ones of an owner lie one behind the other.
void ShardedDataParallel::allocate(Rank& rank) {
  const std::vector<OwnedSize> sizes = owned_sizes();
  owners_ = owners_in_order(sizes, rank.world_size());
  std::vector<int64_t> elements(static_cast<size_t>(rank.world_size()), 0);
  for (size_t index = 0; index < sizes.size(); ++index) {
    elements[static_cast<size_t>(owners_[index])] +=
        sizes[index].trainable ? sizes[index].elements : 0;
  }
  const DType dtype = plan().parameter_dtype;
  for (const int64_t of_owner : elements) {
    flat_.push_back(of_owner > 0 ? rank.allocate(Purpose::parameter, dtype, of_owner) : Slice{});
  }
  std::vector<int64_t> filled(elements.size(), 0);
  std::vector<Slice> parameters;
  for (size_t index = 0; index < sizes.size(); ++index) {
    const auto owner = static_cast<size_t>(owners_[index]);
    if (!sizes[index].trainable) {
      parameters.push_back(rank.allocate(Purpose::parameter, dtype, sizes[index].elements));
      continue;
    }
    parameters.push_back(flat_[owner].part(filled[owner], sizes[index].elements));
    filled[owner] += sizes[index].elements;
  }
  replica().state().allocate_in(rank, parameters, static_cast<uint64_t>(rank.id()));
}

Program ShardedDataParallel::setup(Rank& rank, Stage stage) {
  if (!replica().is_allocated()) {
    allocate(rank);
  }
  if (stage != Stage::fit) {
    co_return;  // Lightning wraps the model for a fit alone
  }
  replica().forget_optimizer(rank);
  const bool several_nodes = rank.world_size() > rank.place().local_world_size;
  const int64_t usual = several_nodes ? reduce_buffer_size_of_fairscale : 0;
  // One rank has nothing to reduce.
  const int64_t buffer =
      rank.world_size() > 1 ? options_.reduce_buffer_size.value_or(usual) : int64_t{0};
  reduction_.emplace(replica(), owners_, OwnerReductionOptions{buffer, options_.reduce_fp16});
  reduction_->allocate(rank);
  if (options_.sync_models_at_startup) {
    co_await send_states(rank);
  }
}

// 2. Rank 0's states become everybody's, a broadcast for each, module by module.
Program ShardedDataParallel::send_states(Rank& rank) {
  std::vector<Slice> states;
  size_t next_buffer = 0;
  const std::vector<Replica::Buffer>& buffers = replica().buffers();
  const auto add_buffers_before = [&](size_t layer) {
    while (next_buffer < buffers.size() && buffers[next_buffer].layer < layer) {
      states.push_back(buffers[next_buffer++].value);
    }
  };
  for (const Replica::Parameter& parameter : replica().parameters()) {
    add_buffers_before(parameter.place.layer);
    states.push_back(parameter.tensor.value);
  }
  add_buffers_before(replica().network().layers.size());
  const Ticket ready = rank.event({compute_stream, {}, site_id(fairscale_sites::send_states)});
  Ticket last{};
  for (const Slice& state : states) {
    last = rank.broadcast(world_group, state, 0,
                          {communication_stream, {ready}, site_id(fairscale_sites::send_states)});
  }
  co_await rank.settle(last);
}

Program ShardedDataParallel::teardown(Rank& rank) {
  if (reduction_) {
    co_await reduction_->settle(rank);
    sends_old_gradients_ = sends_old_gradients_ || reduction_->sends_old_gradients();
    reduces_twice_ = reduces_twice_ || reduction_->reduces_twice();
    reduction_->release(rank);
    reduction_.reset();
  }
}

// One iteration

// 3. Rank 0's buffers become everybody's, a broadcast for each.
Program ShardedDataParallel::before_forward(Rank& rank, const StepOptions& options) {
  if (!options_.broadcast_buffers || !options.synchronise || replica().buffers().empty()) {
    co_return;
  }
  const Ticket ready = rank.event({compute_stream, {}, site_id(fairscale_sites::send_buffers)});
  Ticket last{};
  for (const Slice& buffer : replica().state().buffer_values()) {
    last = rank.broadcast(world_group, buffer, 0,
                          {communication_stream, {ready}, site_id(fairscale_sites::send_buffers)});
  }
  rank.event({compute_stream, {last}, site_id(fairscale_sites::send_buffers)});
}

// 5. Every rank updates what it owns, 6. and sends it.
Program ShardedDataParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  OwnedStep owned;
  for (const int32_t owner : owners_) {
    owned.owns.push_back(owner == rank.id());
  }
  if (options_.clips_by_whole_norm) {
    owned.norm = SharedNorm{{{world_group}}, site_id(fairscale_sites::share_norm)};
  }
  clips_by_own_norm_ =
      clips_by_own_norm_ || (!owned.norm && rank.world_size() > 1 &&
                             options.clipping.algorithm == GradientClipping::Algorithm::norm);
  const std::optional<UpdateOptions> update =
      co_await scaled_step_of_parts(rank, replica(), options, owned);
  if (update) {
    replica().optimizer_step(rank, *update, site_id(fairscale_sites::update), &owned);
    co_await send_parameters(rank);
  }
  reduction_->end_step();
  transfers().end_step();
}

Program ShardedDataParallel::send_parameters(Rank& rank) {
  using Broadcast = ShardedDataParallelOptions::Broadcast;
  const bool several_nodes = rank.world_size() > rank.place().local_world_size;
  const bool narrow = options_.broadcast == Broadcast::half ||
                      (options_.broadcast == Broadcast::half_between_nodes && several_nodes);
  const SiteId site = site_id(fairscale_sites::send_parameters);
  std::vector<Slice> travelling;
  for (const Slice& flat : flat_) {
    travelling.push_back(flat);
    if (narrow && flat.buffer != no_buffer && flat.dtype != DType::fp16) {
      travelling.back() = rank.allocate(Purpose::communication, DType::fp16, flat.elements);
      elementwise(rank, Kernel::cast, {flat}, {travelling.back()}, 0, {compute_stream, {}, site});
    }
  }
  const Ticket updated = rank.event({compute_stream, {}, site});
  Ticket last{};
  for (size_t owner = 0; owner < flat_.size(); ++owner) {
    if (flat_[owner].buffer != no_buffer) {
      last = rank.broadcast(world_group, travelling[owner], static_cast<int32_t>(owner),
                            {communication_stream, {updated}, site});
      transfers().add(parameters_from_owners, travelling[owner].bytes());
    }
  }
  rank.event({compute_stream, {last}, site});
  for (size_t owner = 0; owner < flat_.size(); ++owner) {
    if (travelling[owner].buffer != flat_[owner].buffer) {
      elementwise(rank, Kernel::cast, {travelling[owner]}, {flat_[owner]}, 0,
                  {compute_stream, {}, site});
      rank.release(travelling[owner]);
    }
  }
  co_return;
}

Bytes ShardedDataParallel::state_bytes_of(int32_t owner) const {
  Bytes bytes{};
  for (const OptimizerPlan& optimizer : plan().optimizers) {
    bytes += flat_[static_cast<size_t>(owner)].bytes() * state_tensors(optimizer);
  }
  return bytes;
}

// consolidate_state_dict: every rank sends its part of the optimizer's state to all in turn; rank 0
// keeps the whole.
Task<WrittenBytes> ShardedDataParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                        SiteId site) {
  for (int32_t owner = 0; owner < rank.world_size() && !request.weights_only; ++owner) {
    const Bytes size = owner == 0 ? Bytes(8) : state_bytes_of(owner);
    co_await broadcast_pickled(
        rank, {world_group, rank.world_size(), owner, site_id(fairscale_sites::send_optimizer)},
        size);
  }
  co_return co_await Strategy::save_checkpoint(rank, request, site);
}

std::vector<KnownDifference> ShardedDataParallel::known_differences() {
  std::vector<KnownDifference> known;
  if (sends_old_gradients_ || (reduction_ && reduction_->sends_old_gradients())) {
    known.push_back(
        {"FairScale's buffers hold views of gradients, and zero_grad has set gradients "
         "to None (torch from 2.0 on): the buffers are reduced with what an earlier "
         "backward left in them",
         "set `reduce_buffer_size: 0` of the strategy, or let zero_grad keep the "
         "gradients (`set_to_none: false` of the optimizer)"});
  }
  if (plan().world_size != 1 && (reduces_twice_ || (reduction_ && reduction_->reduces_twice()))) {
    known.push_back(
        {"outside of no_sync every backward divides by the ranks and reduces what an owner holds, "
         "with what it has reduced before: gradients of earlier micro-batches count less",
         options_.accumulates_under_no_sync
             ? "put every backward but the last of a step under no_sync"
             : "use Lightning 1.5 or newer, which accumulates under no_sync, or "
               "accumulate_grad_batches: 1"});
  }
  if (clips_by_own_norm_) {
    known.push_back(norm_of_own_part());
  }
  return known;
}

}  // namespace lockstep
