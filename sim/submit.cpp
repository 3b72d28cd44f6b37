// A submission becomes a time at once if everything before it is known, else a part
// that waits.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/core/random.hpp"
#include "model/network/execute.hpp"
#include "sim/engine.hpp"

namespace lockstep::sim {

namespace {

int fraction_bits(DType dtype) {
  switch (dtype) {
    case DType::fp64: return 52;
    case DType::fp16: return 10;
    case DType::bf16: return 7;
    default: return 23;
  }
}

// Up or down by one rounding, as drawn.
Values rounded_otherwise(const Values& values, uint64_t& drawn) {
  if (!is_floating(values.dtype())) {
    return values;
  }
  const double unit = std::ldexp(1, -fraction_bits(values.dtype()));
  std::vector<double> numbers;
  for (int64_t element = 0; element < values.size(); ++element) {
    const double by = random_key(drawn++, 0) % 2 == 0 ? unit : -unit;
    numbers.push_back(values.number(element) * (1 + by));
  }
  return Values::of(values.dtype(), numbers);
}

class TableOperands final : public Operands {
 public:
  /// `roundings`: how many were drawn; null: values are stored as they are.
  TableOperands(RankState& rank, uint64_t* roundings) : rank_(rank), roundings_(roundings) {}
  Values load(const Slice& from) override { return rank_.buffers->load(from); }
  void store(const Slice& to, const Values& values) override {
    rank_.buffers->store(to,
                         roundings_ == nullptr ? values : rounded_otherwise(values, *roundings_));
  }
  UpdateSensitivity* sensitivity_of(const Slice& parameter) override {
    return &rank_.sensitivities[{parameter.buffer.value, parameter.begin}];
  }

 private:
  RankState& rank_;
  uint64_t* roundings_;
};

}  // namespace

Ticket Engine::submit(RankState& rank, std::span<const Op> ops) {
  LaneState& lane = *rank.running;
  lane.host += simulation_.launch_overhead;
  operations_ += static_cast<int64_t>(ops.size()) * rank.stands_for;
  simulated_operations_ += static_cast<int64_t>(ops.size());
  if (launch_limit_.is_near(rank, lane) && ops.front().kind != OpKind::host) [[unlikely]] {
    launch_limit_.make_room(rank, lane);
  }
  const Ticket ticket = lane.tickets.open(lane.lane.id(), static_cast<uint32_t>(ops.size()));
  if (rank.launched.counting()) {
    rank.launched.submitted();
  }
  for (const Op& op : ops) {
    submit_part(rank, lane, op, ticket);
  }
  if (simulation_.leaves_out_periods) {
    for (const Op& op : ops) {
      Periods::note_submitted(rank, op);
    }
  }
  const TicketState& state = lane.tickets.state(ticket.sequence);
  for (const Op& op : ops) {
    if (op.kind != OpKind::host) {
      StreamState& stream = rank.stream(op.stream);
      stream.tail = ticket;
      stream.known = state.known();
      stream.finish = state.finish;
    }
  }
  if (in_flight_.has_ready()) {
    drain();
  }
  return ticket;
}

void Engine::submit_part(RankState& rank, LaneState& lane, const Op& op, Ticket ticket) {
  if (op.kind == OpKind::host) {
    lane.host += Time(op.work);
    in_flight_.tell(rank, ticket, lane.host, lane.host - Time(op.work), lane.host);
    in_flight_.close(rank, ticket, lane.host);
    return;
  }
  InFlight::Pending pending{op, ticket, lane.host};
  in_flight_.find_dependencies(rank, lane, pending);
  const bool local = op.kind == OpKind::compute || op.kind == OpKind::event;
  if (local && pending.part == no_index && pending.ready < rank.lost_at && !pending.failed) {
    const Time finish = finish_of_local(rank, op, ticket, pending.ready);
    try {
      compute_values(rank, op);
    } catch (const std::exception&) {
      note_broken(rank, op.site);
      return in_flight_.fail(rank, ticket, lane.host, pending.ready);
    }
    in_flight_.tell(rank, ticket, lane.host, pending.ready, finish);
    in_flight_.close(rank, ticket, finish);
    return;
  }
  const uint32_t index = in_flight_.keep(rank, pending);
  if (is_collective(op.kind)) {
    Collectives::enter(rank, in_flight_[index]);
  } else if (is_point_to_point(op.kind)) {
    messages_.post(index);
  }
  in_flight_.await_launch(index);
}

Time Engine::finish_of_local(RankState& rank, const Op& op, Ticket ticket, Time ready) {
  if (op.kind == OpKind::event) {
    return ready;
  }
  const Time skipped = rank.skipped == Time{} ? Time{} : rank.skipped_time(ticket);
  Time finish = ready + simulation_.compute->duration(op, rank.place.rank, ready + skipped);
  if (simulation_.contention > 0 && op.stream == compute_stream) {
    finish += std::exchange(rank.beside.lost, {});
    rank.beside.computes_until = std::max(rank.beside.computes_until, finish);
  }
  return finish;
}

void Engine::compute_values(RankState& rank, const Op& op) {
  if (op.lists != nullptr && !op.lists->writes.empty()) {
    const bool rounds_otherwise = simulation_.rounds_otherwise && is_update(op.kernel);
    TableOperands operands(rank, rounds_otherwise ? &roundings_ : nullptr);
    execute_kernel(op, operands, options_.network);
  }
}

}  // namespace lockstep::sim
