#include "model/strategy/server/weight_server.hpp"

#include <algorithm>
#include <utility>

#include "model/program/fault_port.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/server/server_sites.hpp"

namespace lockstep {

using namespace server_sites;

namespace {

constexpr std::string_view received = "received";
constexpr std::string_view answered = "answered";

// Each worker has a queue of its own: in one queue a worker that is late would hold up the others.
StreamId queue_of(int32_t worker) {
  constexpr int32_t queues = 256 - queue::first_named;
  return stream(static_cast<uint8_t>(queue::first_named + worker % queues));
}

}  // namespace

WeightServer::WeightServer(const Replica& replica, const FlatWeights& weights,
                           const ServerOptions& options, const ServerRoles& roles, int32_t server)
    : replica_(&replica),
      layout_(&weights),
      options_(options),
      roles_(roles),
      part_(weights.part(server)),
      rule_(options, roles.workers),
      workers_(static_cast<size_t>(roles.workers)),
      transfers_({}) {}

void WeightServer::allocate(Rank& rank) {
  const DType dtype = replica_->plan().parameter_dtype;
  flat_.value = rank.allocate(Purpose::parameter, dtype, part_.elements);
  flat_.gradient = rank.allocate(Purpose::gradient, dtype, part_.elements);
  const bool sums = roles_.workers > 1 &&
                    (options_.mode == ServerMode::sync || options_.mode == ServerMode::batched);
  for (Slice& arriving : arriving_) {
    arriving = sums ? rank.allocate(Purpose::communication, dtype, part_.elements) : Slice{};
  }
  for (const Held& held : held()) {
    OptimizedTensor tensor;
    tensor.value = held.value;
    tensor.gradient = flat_.gradient.part(held.value.begin, held.value.elements);
    tensors_.push_back(tensor);
    if (replica_->writes_values()) {
      rank.write(held.value, replica_->state()
                                 .initial_value(held.parameter, 0)
                                 .slice(held.first_element, held.value.elements));
    }
  }
  for (Worker& worker : workers_) {
    worker.said = rank.allocate(Purpose::metric, WorkerMessage::dtype, WorkerMessage::elements);
  }
}

std::vector<WeightServer::Held> WeightServer::held() const {
  std::vector<Held> held;
  for (const FlatWeights::Piece& piece : layout_->pieces()) {
    const int64_t begin = std::max(piece.begin, part_.begin);
    const int64_t end = std::min(piece.begin + piece.elements, part_.begin + part_.elements);
    if (begin < end) {
      held.push_back({piece.parameter, begin - piece.begin,
                      flat_.value.part(begin - part_.begin, end - begin)});
    }
  }
  return held;
}

Program WeightServer::run(Rank& rank) {
  allocate(rank);
  rank.follow_periods(this);
  while (!rule_.all_have_ended()) {
    begin_update(rank);
    const std::vector<int32_t> arrived = co_await next_messages(rank);
    for (const int32_t worker : arrived) {
      handle(rank, worker);
    }
  }
  rank.follow_periods(nullptr);
  const Ticket last = rank.event({compute_stream, {changed_, answered_}, site_id(end)});
  co_await rank.settle(last);
}

// What a step is to a worker, an update is here. A server has no trainer that would handle a
// signal.
void WeightServer::begin_update(Rank& rank) {
  if (begun_ == rule_.updates()) {
    return;
  }
  begun_ = rule_.updates();
  Position position;
  position.step = begun_;
  if (rank.reached(position) == ProcessSignal::terminate) {
    throw RankLost();
  }
}

void WeightServer::listen(Rank& rank) {
  for (const int32_t worker : rule_.awaited()) {
    Worker& from = workers_[static_cast<size_t>(worker)];
    if (!from.arrives) {
      from.arrives = rank.receive(world_group, from.said, worker, WorkerMessage::said,
                                  {queue_of(worker), {}, site_id(await)});
    }
  }
}

// Where an update needs all workers, the order in which they come changes nothing: it takes them in
// the order of their ranks, so that sums are always the same.
Task<std::vector<int32_t>> WeightServer::next_messages(Rank& rank) {
  listen(rank);
  std::vector<int32_t> awaited = rule_.awaited();
  std::vector<Ticket> arrivals;
  for (const int32_t worker : awaited) {
    arrivals.push_back(workers_[static_cast<size_t>(worker)].arrives);
  }
  if (options_.mode == ServerMode::sync) {
    co_await rank.settle_all(arrivals);
  } else {
    const uint32_t first = co_await rank.settle_any(arrivals, site_id(take));
    awaited = std::vector<int32_t>(1, awaited[first]);
  }
  for (const int32_t worker : awaited) {
    workers_[static_cast<size_t>(worker)].arrives = {};
  }
  co_return awaited;
}

void WeightServer::handle(Rank& rank, int32_t worker) {
  const WorkerMessage message =
      WorkerMessage::of(rank.read(workers_[static_cast<size_t>(worker)].said));
  UpdateRule::Decision decision;
  switch (message.kind) {
    case WorkerMessage::Kind::pull: decision = rule_.pulled(worker); break;
    case WorkerMessage::Kind::end: decision = rule_.ended(worker); break;
    case WorkerMessage::Kind::push:
      transfers_.begin_forward(true);
      learning_rate_ = message.learning_rate;
      decision = rule_.pushed(worker);
      take_gradient(rank, worker, decision.keeps);
      break;
  }
  if (decision.averaged > 0) {
    update(rank, decision.averaged);
  }
  answer(rank, decision.answered);
}

// The first gradient of an update arrives where the sum will be.
void WeightServer::take_gradient(Rank& rank, int32_t worker, bool keeps) {
  const bool is_first = keeps && gathered_ == 0;
  const size_t slot = is_first ? 0 : std::exchange(next_arriving_, 1 - next_arriving_);
  const Slice to = is_first ? flat_.gradient : arriving_[slot];
  const Ticket free = is_first ? changed_ : added_[slot];
  const Ticket arrived = rank.receive(world_group, to, worker, WorkerMessage::gradient,
                                      {communication_stream, {free}, site_id(gradient)});
  transfers_.add(received, to.bytes());
  if (!keeps) {
    added_[slot] = arrived;
    return;
  }
  changed_ = arrived;
  if (!is_first) {
    changed_ = elementwise(rank, Kernel::add, {to}, {flat_.gradient}, 0,
                           {compute_stream, {arrived}, site_id(add)});
    added_[slot] = changed_;
  }
  ++gathered_;
}

// Answers that are still being sent have read the weights first.
void WeightServer::update(Rank& rank, int64_t averaged) {
  Ticket ready = changed_;
  if (averaged > 1) {
    ready =
        elementwise(rank, Kernel::scale, {}, {flat_.gradient}, 1.0 / static_cast<double>(averaged),
                    {compute_stream, {ready}, site_id(server_sites::update)});
  }
  OptimizerPlan optimizer = replica_->plan().optimizers.front();
  optimizer.lr = learning_rate_;
  std::vector<OptimizedTensor*> tensors;
  for (OptimizedTensor& tensor : tensors_) {
    tensors.push_back(&tensor);
  }
  changed_ = optimizer_step(rank, optimizer, kernels_of(replica_->plan()), tensors,
                            {compute_stream, {ready, answered_}, site_id(server_sites::update)});
  gathered_ = 0;
  rank.choose(site_id(server_sites::update), ChoiceKind::step, 1, 0);
  transfers_.end_step();
}

void WeightServer::answer(Rank& rank, const std::vector<int32_t>& workers) {
  if (workers.empty()) {
    return;
  }
  GroupedCall call(rank, {copy_stream, {changed_}, site_id(server_sites::answer)});
  for (const int32_t worker : workers) {
    call.send(world_group, flat_.value, worker, WorkerMessage::weights);
    transfers_.add(answered, flat_.value.bytes());
  }
  answered_ = call.submit();
}

// Of its only wait while it follows: what it does next follows from what has come, and from what
// has been asked for and is about to come.
std::optional<LaneMemory> WeightServer::memory() const {
  LaneMemory memory;
  rule_.remember(memory.numbers);
  memory.numbers.insert(memory.numbers.end(), {gathered_, static_cast<int64_t>(next_arriving_)});
  memory.tickets = {changed_, answered_, added_[0], added_[1]};
  for (const Worker& worker : workers_) {
    memory.tickets.push_back(worker.arrives);
    if (worker.arrives) {
      memory.values.push_back(worker.said.part(0, 1));  // the rate changes nothing but values
    }
  }
  return memory;
}

void WeightServer::period_begins(int32_t level, const PeriodsLeftOut& left_out) {
  std::vector<CountedBy>& counted = counted_[static_cast<size_t>(level)];
  counted.resize(static_cast<size_t>(left_out.number));
  CountedBy now{rule_.counted(), rule_.counted()};
  if (left_out.repeats != nullptr) {
    for_each_repeated(*left_out.repeats, [&](int64_t first, int64_t end, int64_t times) {
      const CountedBy& last = end == left_out.number ? now : counted[static_cast<size_t>(end)];
      rule_.count_again(counted[static_cast<size_t>(first)].behind, last.before, times);
    });
    begun_ = rule_.updates();
    now.behind = rule_.counted();
  }
  counted.push_back(now);
}

}  // namespace lockstep
