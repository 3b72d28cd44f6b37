#include "model/strategy/data_parallel/bagua/bagua.hpp"

#include <utility>

#include "model/strategy/data_parallel/bagua/async_average.hpp"
#include "model/strategy/data_parallel/bagua/bagua_buckets.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/data_parallel/bagua/decentralized.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"

namespace lockstep {

using namespace bagua_sites;

namespace {
constexpr std::string_view exchanged = "exchanged";

bool exchanges_weights(BaguaAlgorithm algorithm) {
  return algorithm == BaguaAlgorithm::decentralized ||
         algorithm == BaguaAlgorithm::low_precision_decentralized ||
         algorithm == BaguaAlgorithm::async;
}
bool compresses(BaguaAlgorithm algorithm) {
  return algorithm == BaguaAlgorithm::bytegrad || algorithm == BaguaAlgorithm::qadam ||
         algorithm == BaguaAlgorithm::low_precision_decentralized;
}
}  // namespace

Bagua::Bagua(const TrainingPlan& plan, const BaguaOptions& options)
    : ReplicatedDataParallel(plan, plan, exchanged), options_(options) {}

// Construction

// What averages weights has them in buckets from the beginning, one of all where they are averaged
// whole. Parameters that are not trained are not sent: ranks that are seeded alike draw them alike.
void Bagua::allocate(Rank& rank) {
  std::vector<Slice> parameters(replica().parameters().size());
  if (exchanges_weights(options_.algorithm)) {
    const bool in_one = options_.algorithm != BaguaAlgorithm::low_precision_decentralized;
    weights_ = weights_in_buckets(rank, in_one ? Bytes::max() : options_.bucket_size,
                                  in_one || options_.flatten, parameters);
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    if (parameters[index].buffer == no_buffer) {
      const ParameterPlace place = replica().parameters()[index].place;
      parameters[index] = rank.allocate(Purpose::parameter, plan().parameter_dtype,
                                        replica().network().parameter(place).elements());
    }
  }
  for (WeightBucket& bucket : weights_) {
    bucket.weights = chosen(parameters, bucket.parameters);
  }
  replica().state().allocate_in(rank, parameters, static_cast<uint64_t>(rank.id()));
  for (size_t index = 0; index < parameters.size(); ++index) {
    if (!replica().parameters()[index].trainable && replica().writes_values()) {
      rank.write(parameters[index], replica().state().initial_value(index, 0));
    }
  }
  if (compresses(options_.algorithm) && replica().writes_values()) {
    error_ = rank.allocate(Purpose::metric, DType::fp32, 1);
  }
}

// `parameters`: gets those that are parts of a bucket.
std::vector<WeightBucket> Bagua::weights_in_buckets(Rank& rank, Bytes size, bool flatten,
                                                    std::vector<Slice>& parameters) {
  std::vector<WeightBucket> buckets;
  for (const std::vector<size_t>& indices : bagua_buckets(replica(), size)) {
    WeightBucket& bucket = buckets.emplace_back();
    bucket.parameters = indices;
    if (!flatten) {
      continue;
    }
    std::vector<Slice> sizes;
    for (const size_t index : indices) {
      const ParameterPlace place = replica().parameters()[index].place;
      sizes.push_back(
          Slice::of_size(plan().parameter_dtype, replica().network().parameter(place).elements()));
    }
    bucket.flat = rank.allocate(Purpose::parameter, plan().parameter_dtype, total_elements(sizes));
    const std::vector<Slice> parts = parts_of(bucket.flat, sizes);
    for (size_t part = 0; part < parts.size(); ++part) {
      parameters[indices[part]] = parts[part];
    }
  }
  return buckets;
}

Program Bagua::setup(Rank& rank, Stage stage) {
  if (!replica().is_allocated()) {
    allocate(rank);
  }
  if (stage != Stage::fit) {
    co_return;  // Lightning wraps the model for a fit alone
  }
  replica().forget_optimizer(rank);
  allocate_optimizer_state(rank);
  if (!groups_.is_made()) {
    co_await all_.make(rank, false);
    co_await groups_.make(rank, options_.hierarchical);
    if (options_.algorithm == BaguaAlgorithm::async) {
      const Rank::NewGroup made =
          rank.split_group(world_group, 0, {communication_stream, {}, site_id(make_groups)});
      co_await rank.settle(made.ready);
      thread_group_ = made.group;
    }
  }
  forwards_ = 0;
  steps_ = 0;
  co_await send_states(rank);
  exchange_ = make_exchange();
  exchange_->prepare(rank);
}

// QAdamOptimizer has its state from the beginning.
void Bagua::allocate_optimizer_state(Rank& rank) {
  for (const OptimizerPlan& optimizer : plan().optimizers) {
    if (optimizer.kind != OptimizerKind::qadam) {
      continue;
    }
    for (Replica::Parameter& parameter : replica().parameters()) {
      while (parameter.trainable && optimizer.holds(parameter.place.layer) &&
             std::ssize(parameter.tensor.state) < state_tensors(optimizer)) {
        parameter.tensor.state.push_back(rank.allocate(Purpose::optimizer_state,
                                                       parameter.tensor.value.dtype,
                                                       parameter.tensor.value.elements));
      }
    }
  }
}

// _bagua_broadcast_parameters: rank 0's become everybody's, a broadcast for each tensor, and one
// for all numbers of the optimizers that are no tensors. Without state there are none.
Program Bagua::send_states(Rank& rank) {
  std::vector<Slice> states;
  for (const Replica::Parameter& parameter : replica().parameters()) {
    if (parameter.trainable) {
      states.push_back(parameter.tensor.value);
    }
  }
  const size_t parameters = states.size();
  for (const Replica::Parameter& parameter : replica().parameters()) {
    states.insert(states.end(), parameter.tensor.state.begin(), parameter.tensor.state.end());
  }
  const Ticket ready = rank.event({compute_stream, {}, site_id(send_parameters)});
  Ticket last{};
  for (size_t index = 0; index < states.size(); ++index) {
    const std::string_view step = index < parameters ? send_parameters : send_optimizer;
    last = rank.broadcast(world_group, states[index], 0,
                          {communication_stream, {ready}, site_id(step)});
  }
  if (states.size() > parameters) {
    constexpr int64_t pickled_bytes = 256;  // some numbers with their names
    const Slice numbers = rank.allocate(Purpose::communication, DType::uint8, pickled_bytes);
    last = rank.broadcast(world_group, numbers, 0,
                          {communication_stream, {}, site_id(send_optimizer)});
    last = rank.event({compute_stream, {last}, site_id(send_optimizer)});
    rank.release(numbers);
  }
  co_await rank.settle(last);
}

std::unique_ptr<BaguaExchange> Bagua::gradient_buckets(std::unique_ptr<BucketOperation> operation) {
  return std::make_unique<BaguaBuckets>(
      replica(), BaguaBuckets::Options{options_.bucket_size, options_.flatten, nullptr},
      std::move(operation));
}

std::unique_ptr<BucketOperation> Bagua::compressed_average() const {
  return std::make_unique<CompressedAverageOfBucket>(groups_, options_.average, error_);
}

std::unique_ptr<BaguaExchange> Bagua::moment_buckets() {
  return std::make_unique<BaguaBuckets>(
      replica(), BaguaBuckets::Options{options_.bucket_size, true, &plan().optimizers.front()},
      compressed_average());
}

std::unique_ptr<BaguaExchange> Bagua::async_average() const {
  return std::make_unique<AsyncAverage>(weights_.front().flat, thread_group_,
                                        Time(options_.sync_interval_ms * 1'000'000'000),
                                        plan().barrier_is_all_reduce);
}

std::unique_ptr<BaguaExchange> Bagua::make_exchange() {
  switch (options_.algorithm) {
    case BaguaAlgorithm::bytegrad: return gradient_buckets(compressed_average());
    case BaguaAlgorithm::qadam:
      return gradient_buckets(std::make_unique<AverageOfBucket>(all_, true));
    case BaguaAlgorithm::low_precision_decentralized:
      return std::make_unique<LowPrecisionRing>(replica(), groups_, weights_,
                                                options_.communication_interval, error_);
    case BaguaAlgorithm::decentralized:
      if (!weights_.empty()) {
        return std::make_unique<DecentralizedAverage>(
            groups_, weights_.front().flat, options_.shift_one, options_.communication_interval);
      }
      break;
    case BaguaAlgorithm::async:
      if (options_.warmup_steps == 0 && !weights_.empty()) {
        return async_average();
      }
      break;
    case BaguaAlgorithm::gradient_allreduce: break;
  }
  return gradient_buckets(std::make_unique<AverageOfBucket>(groups_, options_.average));
}

Program Bagua::teardown(Rank& rank) {
  if (exchange_ == nullptr) {
    co_return;
  }
  co_await exchange_->end(rank);
  if (before_ != nullptr) {
    co_await before_->end(rank);
  }
  exchange_.reset();
  before_.reset();
}

// One iteration

// need_reset: QAdam asks before every forward, async once.
bool Bagua::is_due_for_reset() const {
  if (options_.algorithm == BaguaAlgorithm::qadam) {
    return steps_ == plan().optimizers.front().warmup_steps;
  }
  return options_.algorithm == BaguaAlgorithm::async && options_.warmup_steps > 0 &&
         forwards_ == options_.warmup_steps + 1 && !weights_.empty();
}

// Messages between peers tell ranks apart.
std::vector<int64_t> Bagua::kinds_of_ranks(const RanksOfRun& run) {
  switch (options_.algorithm) {
    case BaguaAlgorithm::low_precision_decentralized: return {};
    case BaguaAlgorithm::decentralized:
      if (options_.shift_one) {
        return {};
      }
      break;
    case BaguaAlgorithm::gradient_allreduce:
    case BaguaAlgorithm::bytegrad:
    case BaguaAlgorithm::qadam:
    case BaguaAlgorithm::async: break;
  }
  return std::vector<int64_t>(static_cast<size_t>(run.all), 0);
}

// In hierarchical mode the leader of each node exchanges with the others of its node.
Neighbourhoods Bagua::neighbourhoods_of_ranks(const RanksOfRun& run) {
  return options_.hierarchical && run.of_node > 1 && run.of_node < run.all
             ? neighbours_in_order(run.all, run.of_node)
             : Neighbourhoods();
}

// Forwards of validations count as well, of which nobody knows ahead how many come in between: each
// is one of its own.
std::optional<int64_t> Bagua::forwards_of_warmup() const {
  const bool counts = options_.algorithm == BaguaAlgorithm::async && options_.warmup_steps > 0;
  return counts && forwards_ <= options_.warmup_steps + 2 ? std::optional(forwards_) : std::nullopt;
}

bool Bagua::counts_steps() const {
  const bool is_warm = options_.algorithm != BaguaAlgorithm::qadam ||
                       place_beside(steps_, plan().optimizers.front().warmup_steps) == 0;
  return exchange_ != nullptr && (exchange_->counts_steps() || forwards_of_warmup() || !is_warm);
}

void Bagua::add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const {
  if (exchange_ == nullptr) {
    return;
  }
  exchange_->add_step_kind(ahead, forwards, kind);
  if (options_.algorithm == BaguaAlgorithm::qadam) {
    kind.push_back(kind_beside(steps_ + ahead, plan().optimizers.front().warmup_steps));
  } else if (const auto begun = forwards_of_warmup()) {
    kind.insert(kind.end(), {*begun, ahead});
  }
}

void Bagua::add_place(int64_t steps, int64_t forwards, std::vector<int64_t>& place) const {
  if (exchange_ == nullptr) {
    return;
  }
  exchange_->add_place(forwards, place);
  if (options_.algorithm == BaguaAlgorithm::qadam) {
    place.push_back(place_beside(steps_ + steps, plan().optimizers.front().warmup_steps));
  } else if (const auto begun = forwards_of_warmup()) {
    place.insert(place.end(), {*begun, steps});
  }
}

// Training holds the lock from the start of a forward to the end of its backward
// (async_model_average.py).
std::string Bagua::weights_change_beside() const {
  return options_.algorithm == BaguaAlgorithm::async && exchange_ != nullptr && forwards_ > 0 &&
                 plan().world_size > 1 && !exchange_->holds_lock()
             ? "the thread that averages weights changes them whenever no forward or backward "
               "holds its lock"
             : "";
}

int64_t Bagua::steps_of_cycle(int64_t forwards) const {
  return exchange_ == nullptr ? 1 : exchange_->steps_of_cycle(forwards);
}

void Bagua::leave_out(int64_t steps, int64_t forwards) {
  steps_ += steps;
  forwards_ += forwards;
  if (exchange_ != nullptr) {
    exchange_->leave_out(forwards);
  }
}

// algorithm_reset_hook: state is sent again, and there are new buckets.
Program Bagua::reset(Rank& rank) {
  co_await exchange_->settle(rank);
  co_await send_states(rank);
  if (before_ == nullptr) {
    before_ = std::move(exchange_);
    exchange_ = options_.algorithm == BaguaAlgorithm::async ? async_average() : moment_buckets();
    exchange_->prepare(rank);
  }
}

Program Bagua::before_forward(Rank& rank, const StepOptions& options) {
  ++forwards_;
  if (is_due_for_reset()) {
    co_await reset(rank);
  }
  co_await exchange_->forward_begins(rank, options.training);
}

Program Bagua::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const std::optional<UpdateOptions> scaled = co_await scaled_step(rank, replica(), options);
  if (scaled) {
    replica().optimizer_step(rank, *scaled, site_id(update));
    ++steps_;
  }
  if (scaled && exchange_ != nullptr) {
    co_await exchange_->step_taken(rank, options.optimizer);
  }
  transfers().end_step();
}

// Across ranks

// BaguaStrategy.reduce has no barrier.
Program Bagua::reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) {
  const Ticket ready = rank.event({compute_stream, {}, site});
  const Ticket reduced =
      rank.all_reduce(world_group, data, reduction, {communication_stream, {ready}, site});
  co_await rank.settle(reduced);
}

std::vector<KnownDifference> Bagua::known_differences() {
  std::vector<KnownDifference> known;
  add_statistics_kept_apart(replica(), plan().world_size,
                            "Bagua's wrapper exchanges what is trained; nothing sends the running "
                            "statistics of batch norm",
                            known);
  switch (options_.algorithm) {
    case BaguaAlgorithm::gradient_allreduce: break;
    case BaguaAlgorithm::bytegrad:
      known.push_back({"bytegrad rounds gradients", "", DifferenceKind::by_design});
      break;
    case BaguaAlgorithm::qadam:
      known.push_back(
          {"qadam averages first moments, and rounds them", "", DifferenceKind::by_design});
      break;
    case BaguaAlgorithm::decentralized:
    case BaguaAlgorithm::low_precision_decentralized:
    case BaguaAlgorithm::async:
      known.push_back({"ranks average weights, not gradients", "",
                       plan().world_size > 1 ? DifferenceKind::of_replicas_for_good
                                             : DifferenceKind::by_design});
  }
  return known;
}

std::optional<double> Bagua::compression_error(Rank& rank) {
  return error_.buffer == no_buffer ? std::nullopt : std::optional(rank.read(error_).number(0));
}

}  // namespace lockstep
