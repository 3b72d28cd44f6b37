#include "model/strategy/ddp.hpp"

#include <algorithm>

#include "model/strategy/ddp_sites.hpp"

namespace lockstep {

using namespace ddp_sites;

namespace {

constexpr Bytes default_cap{25 * 1024 * 1024};
constexpr Bytes first_bucket_cap{1024 * 1024};

}  // namespace

DistributedDataParallel::DistributedDataParallel(const TrainingPlan& plan,
                                                 const DataParallelOptions& options)
    : DistributedStrategy(plan), options_(options), replica_(plan, DeviceId{0}) {}

// Construction

Program DistributedDataParallel::setup(Rank& rank) {
  replica_.allocate(rank, static_cast<uint64_t>(rank.id()));
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    position_of_.push_back(trainable_.size());
    if (replica_.parameters()[index].trainable) {
      trainable_.push_back(index);
    }
  }
  used_.assign(replica_.parameters().size(), false);
  active_ranks_ = rank.world_size();
  scratch_ = rank.allocate(Purpose::metric, DType::int64, 1);
  const auto count = static_cast<int64_t>(trainable_.size());
  if (options_.find_unused_parameters || options_.static_graph) {
    used_map_ = rank.allocate(Purpose::metric, DType::int32, count);
  }

  // 1, 2. All ranks hold the same parameters, or all raise.
  co_await verify_parameters(rank);

  // 3. Rank 0's parameters, then its buffers, are everybody's.
  std::vector<Slice> parameters;
  for (const Replica::Parameter& parameter : replica_.parameters()) {
    parameters.push_back(parameter.tensor.value);
  }
  if (options_.broadcast_buffers) {
    for (const Replica::Buffer& buffer : replica_.buffers()) {
      parameters.push_back(buffer.value);
    }
  }
  co_await broadcast_coalesced(rank, world_group, parameters, 0, broadcast_chunk,
                               site_id(send_parameters));
  make_buckets(rank, first_assignment());
}

Program DistributedDataParallel::verify_parameters(Rank& rank) {
  const Purpose purpose = plan().numerics ? Purpose::metric : Purpose::communication;
  const Slice own = rank.allocate(purpose, DType::int64, 1);
  const Slice all = rank.allocate(purpose, DType::int64, rank.world_size());
  rank.write(own, Values::of(DType::int64, {static_cast<double>(trainable_.size())}));
  const Ticket counted =
      rank.all_gather(world_group, own, all, {communication_stream, {}, site_id(count_parameters)});
  co_await rank.settle(counted);
  rank.release(own);
  rank.release(all);

  int64_t dimensions = 0;
  for (const size_t index : trainable_) {
    const ParameterPlace place = replica_.parameters()[index].place;
    dimensions += static_cast<int64_t>(replica_.network().parameter(place).shape.size());
  }
  const Slice shapes = rank.allocate(Purpose::communication, DType::int64, 2 * dimensions);
  const Ticket compared =
      rank.broadcast(world_group, shapes, 0, {communication_stream, {}, site_id(compare_shapes)});
  co_await rank.settle(compared);
  rank.release(shapes);
}

BucketAssignment DistributedDataParallel::first_assignment() const {
  std::vector<BucketedTensor> tensors;
  for (const size_t index : trainable_) {
    const Slice& value = replica_.parameters()[index].tensor.value;
    tensors.push_back({value.dtype, value.bytes()});
  }
  if (!options_.find_unused_parameters || options_.static_graph) {
    return assign_buckets(tensors, {});  // one bucket a type: no overlap in the first iteration
  }
  std::vector<Bytes> limits{options_.bucket_cap.value_or(default_cap)};
  if (!options_.bucket_cap) {
    limits.insert(limits.begin(), first_bucket_cap);
  }
  BucketAssignment buckets = assign_buckets(tensors, limits);
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

// One iteration

Program DistributedDataParallel::forward(Rank& rank, const Batch& batch,
                                         const StepOptions& options) {
  // The host runs at most one step ahead of the device and of the exchange.
  co_await rank.settle(loss_ready_);
  co_await rank.settle_all(exchanged_);
  exchanged_.clear();
  if (!options.through_wrapper) {
    synchronising_ = false;
    loss_ready_ = replica_.forward(rank, batch, options);
    co_return;
  }
  const bool with_gradients = options.training;
  synchronising_ = with_gradients && options.synchronise;
  if (with_gradients) {
    raise_if_unfinished();
  }
  // Joined ranks shadow every forward of training, also one inside no_sync.
  const bool shadowed = options_.join && with_gradients;
  if (shadowed) {
    active_ranks_ = co_await agree_on_join(rank, 1, Reduction::sum, count_active);  // 1
  }
  if (with_gradients && rebuild_due_) {
    co_await rebuild_buckets(rank);  // 2
  }
  if (options_.broadcast_buffers && require_forward_sync_) {
    if (shadowed && !replica_.buffers().empty()) {
      buffer_root_ = static_cast<int32_t>(
          co_await agree_on_join(rank, rank.id(), Reduction::max, choose_root));
    }
    co_await synchronise_buffers(rank);  // 3
  }
  if (shadowed) {
    co_await agree_on_join(rank, synchronising_ ? 1 : 0, Reduction::sum, will_synchronise);  // 4
  }
  loss_ready_ = replica_.forward(rank, batch, options);  // 5
  require_forward_sync_ = synchronising_;
  if (with_gradients) {
    prepare_for_backward();  // 6
  }
}

Program DistributedDataParallel::backward(Rank& rank, const StepOptions& options) {
  Ticket done = replica_.backward_of_loss(rank, options);
  const bool looks_for_unused = options_.find_unused_parameters || options_.static_graph;
  if (synchronising_ && looks_for_unused && !delay_reduction_) {
    mark_unused_ready(rank);
  }
  for (const size_t layer : replica_.layers_last_to_first()) {
    done = replica_.backward(rank, layer);
    for (const size_t parameter : replica_.trainable_of(layer)) {
      used_[parameter] = true;
    }
    if (synchronising_) {
      mark_layer_ready(rank, layer, done);  // 7, 8
    }
  }
  replica_.forget_forward(rank);
  if (synchronising_) {
    co_await finish_reduction(rank);  // 9, 10
  }
}

Program DistributedDataParallel::synchronise_buffers(Rank& rank) {
  std::vector<Slice> buffers;
  for (const Replica::Buffer& buffer : replica_.buffers()) {
    buffers.push_back(buffer.value);
  }
  co_await broadcast_coalesced(rank, world_group, buffers, buffer_root_, broadcast_chunk,
                               site_id(send_buffers));
}

// Once, after the first synchronised backward: buckets in the order in which gradients came, which
// is rank 0's for all.
Program DistributedDataParallel::rebuild_buckets(Rank& rank) {
  rebuild_due_ = false;
  const auto count = static_cast<int64_t>(trainable_.size());
  std::vector<BucketedTensor> tensors;
  for (const size_t index : trainable_) {
    const Slice& value = replica_.parameters()[index].tensor.value;
    tensors.push_back({value.dtype, value.bytes()});
  }
  const Slice order = rank.allocate(Purpose::metric, DType::int32, count + 1);
  Values own(DType::int32, count + 1);
  for (int64_t i = 0; i < count; ++i) {
    own.set_integer(i, static_cast<int64_t>(ready_order_[static_cast<size_t>(i)]));
  }
  rank.write(order, own);
  const Ticket ordered =
      rank.broadcast(world_group, order, 0, {communication_stream, {}, site_id(send_order)});
  co_await rank.settle(ordered);
  const Values agreed = rank.read(order);
  std::vector<size_t> ready;
  for (int64_t i = 0; i < count; ++i) {
    ready.push_back(static_cast<size_t>(agreed.integer(i)));
  }
  const Bytes cap = options_.bucket_cap.value_or(default_cap);
  const Bytes limits[] = {options_.bucket_cap ? cap : first_bucket_cap, cap};
  const BucketAssignment assignment = assign_buckets(tensors, ready, limits);
  const auto buckets = static_cast<int64_t>(assignment.size());
  const Slice sizes = rank.allocate(Purpose::communication, DType::int32, buckets);
  const Ticket sized =
      rank.broadcast(world_group, sizes, 0, {communication_stream, {}, site_id(send_sizes)});
  co_await rank.settle(sized);
  rank.release(order);
  rank.release(sizes);
  make_buckets(rank, assignment);
}

Program DistributedDataParallel::optimizer_step(Rank& rank) {  // 11
  Ticket exchanged;
  if (!exchanged_.empty()) {
    exchanged = rank.event({replica_.compute(), exchanged_, site_id(update)});
  }
  replica_.optimizer_step(rank, site_id(update), exchanged);
  co_return;
}

Program DistributedDataParallel::zero_gradients(Rank& rank, bool set_to_none) {
  replica_.zero_gradients(rank, set_to_none);
  co_return;
}

std::vector<Strategy::Transfer> DistributedDataParallel::transfers_per_step() const {
  Transfer gradients{"gradients_reduced", 0, {}};
  for (const Bucket& bucket : buckets_) {
    gradients.count += bucket.reduced ? 1 : 0;
    gradients.bytes += bucket.reduced ? bucket.flat.bytes() : Bytes{};
  }
  // Data copy, gradient synchronisation: what the guides count.
  return {gradients, {"counted_by_guides", 2, {}}};
}

Program DistributedDataParallel::teardown(Rank& rank) {
  co_await rank.settle_all(exchanged_);
  exchanged_.clear();
}

void DistributedDataParallel::raise_if_unfinished() const {
  if (backward_unfinished_) {
    throw ProgramException(
        site_id(reduce_bucket),
        "expected to have finished reduction in the prior iteration: some parameters got no "
        "gradient, so their bucket was never reduced; use find_unused_parameters: true, or use "
        "every parameter in the loss");
  }
}

namespace {

DataParallelOptions options_from(const StrategyArguments& arguments) {
  DataParallelOptions options;
  options.find_unused_parameters = arguments.boolean("find_unused_parameters", false);
  options.static_graph = arguments.boolean("static_graph", false);
  options.gradient_as_bucket_view = arguments.boolean("gradient_as_bucket_view", false);
  options.broadcast_buffers = arguments.boolean("broadcast_buffers", true);
  options.join = arguments.boolean("join", false);
  options.divide_by_initial_world_size = arguments.boolean("divide_by_initial_world_size", true);
  if (arguments.has("bucket_cap_mb")) {
    const double mebibytes = arguments.number("bucket_cap_mb", 25);
    if (!(mebibytes > 0)) {
      throw std::invalid_argument("strategy argument bucket_cap_mb must be above 0");
    }
    options.bucket_cap = Bytes(static_cast<int64_t>(mebibytes * 1024 * 1024));
  }
  return options;
}

}  // namespace

StrategyEntry distributed_data_parallel() {
  StrategyEntry entry;
  entry.name = "ddp";
  entry.class_name = "DDPStrategy";
  entry.arguments = {"find_unused_parameters",      "static_graph",  "gradient_as_bucket_view",
                     "broadcast_buffers",           "bucket_cap_mb", "join",
                     "divide_by_initial_world_size"};
  for (const std::string_view step : ddp_sites::every_step) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<DistributedDataParallel>(plan, options_from(arguments));
  };
  return entry;
}

}  // namespace lockstep
