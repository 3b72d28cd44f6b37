#include "model/strategy/data_parallel/xla/xla.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/xla/xla_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"

namespace lockstep {

namespace {

constexpr std::string_view gradients_summed = "gradients_reduced";

// With -0, to which every number can be added and stays what it is: +0 would change the sign of a
// gradient that is -0.
void fill(Rank& rank, const Slice& data, SiteId site) {
  const double zero = -0.0;
  KernelCall call;
  call.kernel = Kernel::fill;
  call.writes = {&data, 1};
  call.scalars = {&zero, 1};
  call.memory_traffic = data.bytes();
  rank.compute(call, {compute_stream, {}, site});
}

}  // namespace

XlaDataParallel::XlaDataParallel(const TrainingPlan& plan, const XlaOptions& options)
    : ReplicatedDataParallel(plan, plan, gradients_summed),
      options_(options),
      flat_(plan.optimizers.size()) {}

bool XlaDataParallel::is_alone(const Rank& rank) const {
  return !options_.is_distributed || rank.world_size() == 1;
}

// Construction

// Processes are forked from one that has the module: all begin with the same parameters.
Program XlaDataParallel::setup(Rank& rank, Stage stage) {
  replica().allocate(rank);
  if (options_.sync_module_states && !is_alone(rank)) {
    co_await send_module_state(rank);
  }
  if (stage == Stage::fit) {
    replica().forget_optimizer(rank);
  }
}

// broadcast_master_param: one all_reduce for each type of tensors.
Program XlaDataParallel::send_module_state(Rank& rank) {
  std::map<DType, std::vector<Slice>> of_type;
  for (const Slice& tensor : module_state_of(replica(), true)) {
    of_type[tensor.dtype].push_back(tensor);
  }
  for (const auto& [dtype, tensors] : of_type) {
    co_await broadcast_by_sum(rank, tensors, 0, site_id(xla_sites::send_parameters));
  }
}

// xm.collective_broadcast: the others multiply theirs by 0, then all are summed.
Program XlaDataParallel::broadcast_by_sum(Rank& rank, std::vector<Slice> tensors, int32_t root,
                                          SiteId site) {
  const Slice flat =
      rank.allocate(Purpose::communication, tensors.front().dtype, total_elements(tensors));
  const std::vector<Slice> parts = parts_of(flat, tensors);
  if (rank.id() == root) {
    copy_each(rank, tensors, parts, {compute_stream, {}, site});
  } else {
    fill(rank, flat, site);
  }
  const Ticket ready = rank.event({compute_stream, {}, site});
  const Ticket summed =
      rank.all_reduce(world_group, flat, Reduction::sum, {communication_stream, {ready}, site});
  const Ticket copied = copy_each(rank, parts, tensors, {compute_stream, {summed}, site});
  co_await rank.settle(copied);
  rank.release(flat);
}

Program XlaDataParallel::teardown(Rank& rank) {
  for (Replica::Parameter& parameter : replica().parameters()) {
    if (parameter.gradient_is_view) {
      replica().forget_gradient(rank, parameter);
    }
  }
  for (size_t optimizer = 0; optimizer < flat_.size(); ++optimizer) {
    release_flat(rank, optimizer);
  }
  co_return;
}

// One iteration

Program XlaDataParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  if (options.enters_wrapper) {
    graphs_.begin_batch();
  }
  graphs_.record_forward(options.training, batch.size());
  co_await ReplicatedDataParallel::forward(rank, batch, options);
}

Program XlaDataParallel::backward(Rank& rank, const StepOptions& options) {
  const auto has_gradient = [](const Replica::Parameter& parameter) {
    return parameter.tensor.gradient.buffer != no_buffer;
  };
  graphs_.record_backward(std::ranges::any_of(replica().parameters(), has_gradient));
  begin_gradients(rank);
  co_await ReplicatedDataParallel::backward(rank, options);
}

// The gradients that a window's first backward makes lie side by side, as operands of one call.
void XlaDataParallel::begin_gradients(Rank& rank) {
  std::vector<bool> begins(replica().parameters().size());
  for (const size_t layer : replica().forwards().layers_of_backward()) {
    for (const size_t index : replica().trainable_of(layer)) {
      const Replica::Parameter& parameter = replica().parameters()[index];
      begins[index] = begins[index] || (parameter.tensor.gradient.buffer == no_buffer &&
                                        replica().wants_gradient(parameter));
    }
  }
  for (size_t optimizer = 0; optimizer < flat_.size(); ++optimizer) {
    std::vector<Replica::Parameter*> own;
    int64_t elements = 0;
    for (size_t index = 0; index < begins.size(); ++index) {
      Replica::Parameter& parameter = replica().parameters()[index];
      if (begins[index] && plan().optimizers[optimizer].holds(parameter.place.layer)) {
        own.push_back(&parameter);
        elements += parameter.tensor.value.elements;
      }
    }
    if (own.empty() || flat_[optimizer].buffer != no_buffer) {
      continue;  // what a later backward of the window adds has memory of its own
    }
    Slice& flat = flat_[optimizer];
    flat = rank.allocate(Purpose::gradient, plan().parameter_dtype, elements);
    fill(rank, flat, site_id(xla_sites::begin_gradients));
    int64_t begin = 0;
    for (Replica::Parameter* parameter : own) {
      parameter->tensor.gradient = flat.part(begin, parameter->tensor.value.elements);
      parameter->gradient_is_view = true;
      begin += parameter->tensor.value.elements;
    }
  }
}

// The whole of what lies side by side, and each gradient that does not. A parameter without a
// gradient is left out, as in _fetch_gradients.
std::vector<Slice> XlaDataParallel::gradients_to_reduce(size_t optimizer) {
  std::vector<Slice> found;
  if (flat_[optimizer].buffer != no_buffer) {
    found.push_back(flat_[optimizer]);
  }
  for (const Replica::Parameter& parameter : replica().parameters()) {
    const Slice& gradient = parameter.tensor.gradient;
    if (gradient.buffer != no_buffer && !parameter.gradient_is_view &&
        plan().optimizers[optimizer].holds(parameter.place.layer)) {
      found.push_back(gradient);
    }
  }
  return found;
}

// xm.reduce_gradients, which the precision plugin calls behind the closure and before it clips.
// What a program of manual optimization clips, it has clipped before `optimizer.step()`.
Program XlaDataParallel::complete_gradients(Rank& rank, const UpdateOptions& options) {
  if (is_alone(rank)) {
    co_return;
  }
  if (options.clipping.algorithm != GradientClipping::Algorithm::none) {
    replica().update().clip(rank, options, nullptr);
    clips_own_gradients_ = has_clipped_own_ = true;
  }
  const double share = 1.0 / rank.world_size();
  for (const Slice& gradients : gradients_to_reduce(options.optimizer)) {
    const SiteId site = site_id(xla_sites::reduce_gradients);
    const Ticket ready = rank.event({compute_stream, {}, site});
    const Ticket summed = rank.all_reduce(world_group, gradients, Reduction::sum,
                                          {communication_stream, {ready}, site});
    KernelCall call;
    call.kernel = Kernel::scale;
    call.writes = {&gradients, 1};
    call.scalars = {&share, 1};
    call.memory_traffic = gradients.bytes() * 2;
    rank.compute(call, {compute_stream, {summed}, site_id(xla_sites::scale_gradients)});
    transfers().add(gradients_summed, gradients.bytes());
  }
}

Program XlaDataParallel::optimizer_step(Rank& rank, const UpdateOptions& asked) {
  UpdateOptions options = asked;
  if (std::exchange(clips_own_gradients_, false)) {
    options.clipping = {};
  }
  const auto has_state = [this, &options](const Replica::Parameter& parameter) {
    return !parameter.tensor.state.empty() &&
           plan().optimizers[options.optimizer].holds(parameter.place.layer);
  };
  const bool had_state = std::ranges::any_of(replica().parameters(), has_state);
  replica().optimizer_step(rank, options, site_id(xla_sites::update));
  graphs_.record_update(!had_state && std::ranges::any_of(replica().parameters(), has_state));
  transfers().end_step();
  co_return;
}

void XlaDataParallel::release_flat(Rank& rank, size_t optimizer) {
  const Slice flat = std::exchange(flat_[optimizer], Slice{});
  if (flat.buffer != no_buffer) {
    rank.release(flat);
  }
}

Program XlaDataParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  co_await ReplicatedDataParallel::zero_gradients(rank, optimizer, set_to_none);
  if (set_to_none) {
    release_flat(rank, optimizer);
  }
}

// XLACheckpointIO of 2.0 and earlier.
Task<WrittenBytes> XlaDataParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                    SiteId site) {
  const WrittenBytes written = co_await Strategy::save_checkpoint(rank, request, site);
  if (options_.saves_on_all_ranks && !is_alone(rank)) {
    co_await rank.settle(
        rank.barrier(world_group, {communication_stream, {}, site_id(xla_sites::save)}));
  }
  co_return written;
}

// Across ranks

// xm.mesh_reduce: hosts exchange their values, and each sums them; there is no barrier before it.
Program XlaDataParallel::reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) {
  if (reduction != Reduction::sum && reduction != Reduction::avg) {
    throw ProgramException(site,
                           fmt::format("ValueError: Currently, the XLAStrategy only supports "
                                       "`sum`, `mean`, `avg` for the reduce operation, got: {}",
                                       name_of(reduction)));
  }
  if (is_alone(rank)) {
    co_return;
  }
  const Ticket ready = rank.event({compute_stream, {}, site});
  const Ticket reduced =
      rank.all_reduce(world_group, data, reduction, {communication_stream, {ready}, site});
  co_await rank.settle(reduced);
}

// xm.rendezvous
Program XlaDataParallel::barrier(Rank& rank, SiteId site) {
  if (!is_alone(rank)) {
    co_await rank.settle(rank.barrier(world_group, {communication_stream, {}, site}));
  }
}

Program XlaDataParallel::broadcast(Rank& rank, Slice data, int32_t root, SiteId site) {
  if (!is_alone(rank)) {
    co_await DistributedStrategy::broadcast(rank, data, options_.has_root ? root : 0, site);
  }
}

Program XlaDataParallel::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  if (!is_alone(rank)) {
    co_await DistributedStrategy::all_gather(rank, part, whole, site);
    co_return;
  }
  const Ticket copied = copy_each(rank, {part}, {whole}, {compute_stream, {}, site});
  co_await rank.settle(copied);
}

std::vector<int64_t> XlaDataParallel::kinds_of_ranks(const RanksOfRun& run) {
  return ShardKinds(run.all).kinds();
}

std::vector<KnownDifference> XlaDataParallel::known_differences() {
  std::vector<KnownDifference> known;
  add_statistics_kept_apart(replica(), options_.is_distributed ? plan().world_size : 1,
                            "XLA's strategy sums gradients; nothing sends the running statistics "
                            "of batch norm",
                            known);
  if (has_clipped_own_) {
    known.push_back(
        {"each rank clips its own gradients: they are summed over the ranks only when the "
         "optimizer steps",
         "clip by gradient_clip_val of the Trainer, with automatic optimization"});
  }
  return known;
}

std::string XlaDataParallel::no_sync_refusal() const {
  return "the module has no no_sync: gradients are summed when the optimizer steps";
}

}  // namespace lockstep
