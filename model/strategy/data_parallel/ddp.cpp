#include "model/strategy/data_parallel/ddp.hpp"

#include <algorithm>
#include <map>

#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/first_weights.hpp"
#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"

namespace lockstep {

namespace {
constexpr std::string_view gradients_reduced = "gradients_reduced";
constexpr std::string_view parameters_averaged = "parameters_averaged";

// Under join the highest rank of those that have data, or that ended last, is a root.
std::vector<int32_t> last_of_each_number(const RanksOfRun& run) {
  std::map<int64_t, int32_t> last;
  for (int32_t rank = 0; rank < run.all; ++rank) {
    last[run.batches.empty() ? 0 : run.batches[static_cast<size_t>(rank)]] = rank;
  }
  std::vector<int32_t> ranks;
  for (const auto& [batches, rank] : last) {
    ranks.push_back(rank);
  }
  return ranks;
}
}  // namespace

DistributedDataParallel::DistributedDataParallel(const TrainingPlan& plan,
                                                 const DataParallelOptions& options)
    : DistributedStrategy(plan),
      options_(options),
      replica_(plan, DeviceId{0}),
      hook_(make_bucket_hook(options.hook)),
      transfers_({data_to_devices, gradients_reduced}) {}

// Construction

// With parameters_as_bucket_view what a rank owns lies in one piece.
void DistributedDataParallel::allocate(Rank& rank) {
  const bool draws_alike = !options_.init_sync && options_.seeded_alike;
  const auto variant = static_cast<uint64_t>(draws_alike ? 0 : rank.id());
  std::vector<Slice> in_pieces(replica_.parameters().size());
  bool has_pieces = false;
  for (size_t optimizer = 0; optimizer < plan().optimizers.size(); ++optimizer) {
    redundancy_free_.emplace_back();
    const OptimizerPlan::Sharding sharding = plan().optimizers[optimizer].sharding;
    if (sharding == OptimizerPlan::Sharding::none) {
      continue;
    }
    redundancy_free_.back().emplace(replica_, optimizer, rank.world_size());
    if (sharding == OptimizerPlan::Sharding::zero_redundancy_in_buckets) {
      has_pieces = true;
      redundancy_free_.back()->allocate_pieces(rank, in_pieces);
    }
  }
  if (!has_pieces) {
    replica_.allocate(rank, variant);
    return;
  }
  for (size_t index = 0; index < in_pieces.size(); ++index) {
    if (in_pieces[index].buffer == no_buffer) {
      const ParameterPlace place = replica_.parameters()[index].place;
      in_pieces[index] = rank.allocate(Purpose::parameter, plan().parameter_dtype,
                                       replica_.network().parameter(place).elements());
    }
  }
  replica_.state().allocate_in(rank, in_pieces, variant);
}

Program DistributedDataParallel::setup(Rank& rank, Stage stage) {
  if (!replica_.is_allocated()) {
    allocate(rank);
  }
  if (stage != Stage::fit) {  // no gradients to exchange: Lightning does not wrap the model
    if (plan().synchronises_without_fit) {
      co_await broadcast_coalesced(rank, world_group, module_state(), 0,
                                   site_id(ddp_sites::send_parameters));
    }
    co_return;
  }
  replica_.forget_optimizer(rank);
  if (plan().synchronises_batch_norm) {
    replica_.synchronise_statistics();
  }
  if (options_.init_sync) {
    // 1, 2. All ranks hold the same parameters, or all raise.
    co_await verify_parameters(rank, replica_);
    // 3. Rank 0's parameters, then its buffers, are everybody's.
    co_await broadcast_coalesced(rank, world_group, module_state(), 0,
                                 site_id(ddp_sites::send_parameters));
  }
  reducer_.emplace(replica_, options_, hook_.get());
  reducer_->allocate(rank);
  averager_ = make_model_averager(replica_, options_.hook.averaging);
  if (averager_) {
    co_await averager_->begin(rank);
  }
  require_forward_sync_ = true;
  if (options_.join) {
    active_.allocate(rank, DType::fp32);
    ended_.allocate(rank, DType::fp32);
    synchronises_.allocate(rank, DType::fp32);
    candidate_.allocate(rank, DType::int64);
  }
}

std::vector<Slice> DistributedDataParallel::module_state() const {
  return module_state_of(replica_, options_.broadcast_buffers);
}

Program DistributedDataParallel::teardown(Rank& rank) {
  if (!is_wrapped()) {
    co_return;
  }
  co_await reducer_->settle(rank);
  reducer_->release(rank);
  reducer_.reset();
  if (options_.join) {
    for (SharedNumber* number : {&active_, &ended_, &synchronises_, &candidate_}) {
      co_await number->release(rank);
    }
  }
}

// One iteration

Program DistributedDataParallel::forward(Rank& rank, const Batch& batch,
                                         const StepOptions& options) {
  // The host runs at most one step ahead of the device and of the exchange.
  co_await rank.settle(loss_ready_);
  if (is_wrapped()) {
    co_await reducer_->settle(rank);
  }
  const bool through_wrapper = is_wrapped() && options.through_wrapper;
  synchronising_ = through_wrapper && options.training && (options.synchronise || options.manual);
  transfers_.begin_forward(options.training);
  if (through_wrapper && options.enters_wrapper) {
    co_await before_forward(rank, options.training);
  }
  loss_ready_ = co_await forward_of(rank, replica_, batch, options);  // 5.
  transfers_.add(data_to_devices, replica_.batch_bytes());
  if (through_wrapper) {
    // Lightning leaves a manual step's wrapper as if under no_sync (_DDPForwardRedirection).
    require_forward_sync_ = synchronising_ && !options.manual;
  }
  if (synchronising_ && !options.manual) {
    reducer_->prepare_for_backward();  // 6. what this forward left unused
  }
}

Program DistributedDataParallel::before_forward(Rank& rank, bool with_gradients) {
  const bool is_shadowed = options_.join && with_gradients;
  if (is_shadowed) {
    co_await notify_join_context(rank);  // 1. ranks without data learn that this one continues
  }
  if (with_gradients) {
    reducer_->raise_if_unfinished();
    co_await reducer_->rebuild_buckets(rank);  // 2. once
  }
  if (must_send_buffers()) {  // 3. once a window; rank 0 may have no data left
    int32_t root = 0;
    if (is_shadowed) {
      root = co_await common_rank(rank, rank.id(), ddp_sites::choose_root);
    }
    co_await broadcast_coalesced(rank, world_group, replica_.state().buffer_values(), root,
                                 site_id(ddp_sites::send_buffers));
  }
  if (is_shadowed) {
    co_await announce_synchronisation(rank);  // 4. and whether they have gradients to match
  }
}

bool DistributedDataParallel::must_send_buffers() const {
  return options_.broadcast_buffers && require_forward_sync_ && !replica_.buffers().empty();
}

// Lightning's prepare_for_backward: before every manual backward, whatever the forward was.
Program DistributedDataParallel::prepare_manual_backward(Rank& rank, bool synchronise) {
  synchronising_ = is_wrapped() && synchronise;
  if (synchronising_) {
    reducer_->raise_if_unfinished();
    co_await reducer_->rebuild_buckets(rank);
    reducer_->prepare_for_backward();
  }
}

Program DistributedDataParallel::backward(Rank& rank, const StepOptions& options) {
  if (options.manual) {
    co_await prepare_manual_backward(rank, options.synchronise);
  }
  if (synchronising_ && hook_ != nullptr) {
    co_await hook_->begin(rank);
  }
  const int64_t last = replica_.forwards().last();
  const std::vector<BackwardPass> passes = replica_.forwards().take_passes(options);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.forwards().turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    if (synchronising_ && pass == 0) {
      const int64_t ranks = co_await dividing_ranks(rank);
      reducer_->divide_by(ranks);
    }
    for (const size_t layer : replica_.layers_last_to_first()) {
      const Ticket done = replica_.backward(rank, layer);
      // Autograd adds up what all forwards give a parameter before its hook runs.
      if (is_wrapped() && !replica_.adds_later(passes, pass, layer)) {
        reducer_->gradients_ready(rank, layer, done);  // 7, 8. into buckets; full ones are reduced
      }
    }
    replica_.forget_forward(rank);
  }
  replica_.forwards().return_to(last);
  if (is_wrapped()) {
    if (!synchronising_ && options.through_wrapper) {
      co_await reducer_->refuse_first_static(rank);
    }
    co_await reducer_->finish(rank);  // 9, 10. the used map; averages into gradients
    for (const Bytes bytes : reducer_->take_reduced_bytes()) {
      transfers_.add(gradients_reduced, bytes);
    }
  }
}

Program DistributedDataParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const std::optional<UpdateOptions> update = co_await scaled_step(rank, replica_, options);
  if (!update) {
    transfers_.end_step();
    co_return;
  }
  if (auto& divided = redundancy_free_[options.optimizer]) {
    divided->step(rank, *update, transfers_);
  } else {
    replica_.optimizer_step(rank, *update,
                            site_id(ddp_sites::update));  // 11. local, and the same everywhere
  }
  if (averager_) {
    const Bytes sent = co_await averager_->average(rank, options.optimizer);
    if (sent > Bytes{}) {
      transfers_.add(parameters_averaged, sent);
    }
  }
  transfers_.end_step();
}

Program DistributedDataParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica_.zero_gradients(rank, optimizer, set_to_none);
  if (is_wrapped()) {
    reducer_->gradients_forgotten(rank);
  }
  co_return;
}

// Lightning calls consolidate_state_dict of every optimizer that has it, on all ranks.
Task<WrittenBytes> DistributedDataParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                            SiteId site) {
  for (auto& divided : redundancy_free_) {
    if (divided && !request.weights_only) {
      co_await divided->gather_state(rank);
    }
  }
  co_return co_await Strategy::save_checkpoint(rank, request, site);
}

std::vector<int64_t> DistributedDataParallel::kinds_of_ranks(const RanksOfRun& run) {
  ShardKinds kinds(run.all);
  if (options_.join) {
    kinds.set_apart(last_of_each_number(run));
  }
  for (size_t optimizer = 0; optimizer < plan().optimizers.size(); ++optimizer) {
    if (plan().optimizers[optimizer].sharding != OptimizerPlan::Sharding::none) {
      kinds.set_apart(ZeroRedundancyUpdate(replica_, optimizer, run.all).owners());
    }
  }
  return kinds.kinds();
}

// Behind its start post_localSGD_hook reduces gradients within nodes.
Neighbourhoods DistributedDataParallel::neighbourhoods_of_ranks(const RanksOfRun& run) {
  const bool has_subgroups = options_.hook.kind == HookOptions::Kind::post_local_sgd &&
                             options_.hook.post_local_sgd.reduces_gradients_locally;
  return has_subgroups && run.of_node > 1 && run.of_node < run.all
             ? neighbours_in_order(run.all, run.of_node)
             : Neighbourhoods();
}

bool DistributedDataParallel::counts_steps() const {
  return (hook_ && hook_->counts_steps()) || averager_;
}

void DistributedDataParallel::add_step_kind(int64_t ahead, int64_t,
                                            std::vector<int64_t>& kind) const {
  kind.push_back(hook_ ? hook_->kind_of_step(ahead) : 0);
  kind.push_back(averager_ ? averager_->kind_of_step(ahead) : 0);
}

void DistributedDataParallel::add_place(int64_t steps, int64_t, std::vector<int64_t>& place) const {
  place.push_back(hook_ ? hook_->place(steps) : 0);
  place.push_back(averager_ ? averager_->place(steps) : 0);
}

int64_t DistributedDataParallel::steps_of_cycle(int64_t) const {
  return averager_ ? averager_->steps_of_cycle() : 1;
}

void DistributedDataParallel::leave_out(int64_t steps, int64_t) {
  if (hook_) {
    hook_->leave_out(steps);
  }
  if (averager_) {
    averager_->leave_out(steps);
  }
}

std::vector<KnownDifference> DistributedDataParallel::known_differences() {
  std::vector<KnownDifference> known = differences_of(options_.hook);
  if (averager_) {
    known.push_back(averager_->difference());
  }
  if (!options_.init_sync && !options_.seeded_alike && plan().world_size > 1) {
    if (auto unsent = unsent_first_weights(replica_.network(), "init_sync: false",
                                           "leave init_sync out: DDP then sends rank 0's")) {
      known.push_back(*std::move(unsent));
    }
  }
  if (!options_.broadcast_buffers) {
    add_statistics_kept_apart(replica_, plan().world_size,
                              "broadcast_buffers is false: no running statistics are sent", known);
  }
  return known;
}

BucketAssignment DistributedDataParallel::bucket_assignment() const {
  return is_wrapped() ? reducer_->bucket_assignment() : BucketAssignment();
}

}  // namespace lockstep
