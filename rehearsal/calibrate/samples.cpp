#include "rehearsal/calibrate/samples.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"
#include "rehearsal/measure/measure.hpp"
#include "sim/roofline_cost.hpp"

namespace lockstep::cli {

namespace {

/// An operation of one rank that ended well.
struct Timed {
  Row row;
  Completion times;
  Time ready{};       ///< it was submitted, its stream was free, and what it comes after was over
  int64_t index = 0;  ///< of its row

  Time duration() const { return times.finish - ready; }
};

/// The operations of the main lane from row `begin` on, in order.
std::vector<Timed> operations_of(const LaneJournal& lane, int64_t begin) {
  std::vector<Timed> operations;
  std::map<StreamId, Time> free_from;
  int64_t index = 0;
  lane.for_each([&](const Row& row) {
    const int64_t own = index++;
    if (row.row != RowKind::op || row.kind == OpKind::host) {
      return;
    }
    const Completion times = lane.completion(row.sequence);
    if (times.outcome != Outcome::ok) {
      return;
    }
    Time& free = free_from[row.stream];
    Time ready = std::max(times.issue, free);
    for (const Ticket before : lane.lists_of(row).after) {
      if (before && before.lane == LaneId{}) {  // a training and a bare program have one lane
        ready = std::max(ready, lane.completion(before.sequence).finish);
      }
    }
    free = std::max(free, times.finish);
    if (own >= begin) {
      operations.push_back({row, times, ready, own});
    }
  });
  return operations;
}

/// Whether an interval meets one of these, which are in order of start.
bool meets(const std::vector<Timed>& communication, Time begin, Time end) {
  return std::any_of(communication.begin(), communication.end(), [&](const Timed& other) {
    return other.times.start < end && begin < other.times.finish;
  });
}

std::optional<LayerKind> layer_of(const Row& row, const Network& network) {
  switch (row.kernel) {
    case Kernel::layer_forward:
    case Kernel::layer_backward: return network.layers.at(static_cast<size_t>(row.tag)).kind;
    case Kernel::loss_forward:
    case Kernel::loss_backward: return network.loss_of(row.tag).kind;
    default: return std::nullopt;
  }
}

/// Of memory, as the layer states it for its kernels; 0 for other kernels and where it states none.
/// Samples are counted by what the kernel reads.
Bytes stated_traffic(const Row& row, const RowLists& lists, const Network& network) {
  const auto of = [&](const Layer& layer, size_t input, std::initializer_list<Pass> passes) {
    const int64_t samples = lists.reads[input].elements / elements_of(layer.input);
    Bytes sum;
    for (const Pass pass : passes) {
      sum += moved_bytes(layer, pass, samples, row.dtype);
    }
    return sum;
  };
  const auto layer = [&]() -> const Layer& {
    return network.layers.at(static_cast<size_t>(row.tag));
  };
  switch (row.kernel) {
    case Kernel::layer_forward: return of(layer(), 0, {Pass::forward});
    case Kernel::layer_backward:
      return of(layer(), 1, {Pass::input_gradient, Pass::weight_gradient});
    case Kernel::loss_forward: return of(network.loss_of(row.tag), 0, {Pass::forward});
    case Kernel::loss_backward: return of(network.loss_of(row.tag), 0, {Pass::input_gradient});
    default: return Bytes{};
  }
}

/// As the simulation counts it. A row does not keep what its Op stated.
Bytes traffic_of(const Row& row, const RowLists& lists, const Network& network) {
  const OpLists operands{lists.after, lists.reads, lists.writes, lists.splits, {}};
  Op op;
  op.kind = OpKind::compute;
  op.kernel = row.kernel;
  op.bytes = stated_traffic(row, lists, network);
  op.lists = &operands;
  return sim::memory_traffic(op);
}

/// Rows between two submissions in which the host does nothing but allocate.
bool is_quiet(const Row& row) {
  return row.row == RowKind::allocate || row.row == RowKind::release;
}

bool is_kernel(const Row& row) { return row.row == RowKind::op && row.kind == OpKind::compute; }

}  // namespace

MeasuredTime percentiles(std::vector<Time> times) {
  ensure(!times.empty(), "percentiles of something");
  std::sort(times.begin(), times.end());
  const auto at = [&times](double fraction) {
    const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(times.size())));
    return times[std::max<size_t>(rank, 1) - 1];
  };
  return {at(0.05), at(0.5), at(0.95)};
}

// ---- trainings ----

namespace {

/// The number of the step that a row belongs to; that of the first is 0.
int32_t step_of(const std::vector<StepMark>& steps, int64_t row) {
  const auto step =
      std::upper_bound(steps.begin(), steps.end(), row,
                       [](int64_t value, const StepMark& mark) { return value < mark.rows.end; });
  return static_cast<int32_t>(step - steps.begin());
}

int64_t end_of_first(const std::vector<StepMark>& steps) {
  return steps.empty() ? 0 : steps.front().rows.end;
}

}  // namespace

void Samples::add_rank(const OneRun& run, int32_t rank) {
  const Journal& journal = *run.result.journal;
  const Network& network = *run.preparation.options.network;
  const LaneJournal& lane = journal.lane(rank, 0);
  const std::vector<StepMark> steps = steps_of(journal, rank);
  const std::vector<Timed> operations = operations_of(lane, end_of_first(steps));
  std::vector<Timed> communication;
  std::copy_if(operations.begin(), operations.end(), std::back_inserter(communication),
               [](const Timed& timed) { return is_communication(timed.row.kind); });
  const int32_t ranks = journal.ranks();
  const auto training = static_cast<int32_t>(trainings_.size()) - 1;
  for (const Timed& timed : operations) {
    const Row& row = timed.row;
    if (is_communication(row.kind) || meets(communication, timed.ready, timed.times.finish)) {
      continue;
    }
    if (row.kind == OpKind::copy) {
      transfers_[{OpKind::copy, ranks, Bytes(row.bytes)}].push_back(timed.duration());
    } else if (row.kind == OpKind::compute) {
      const KernelKey key{row.kernel,
                          layer_of(row, network),
                          row.dtype,
                          ranks,
                          Flops(row.bytes),  // a kernel's row keeps its work
                          traffic_of(row, lane.lists_of(row), network)};
      kernels_.push_back({key, timed.duration(), training, rank, step_of(steps, timed.index)});
    }
  }
}

// Without clocks in common: the member that comes last waits for nobody.
void Samples::add_exchanges(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  std::vector<std::vector<Timed>> calls;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    calls.push_back(operations_of(journal.lane(rank, 0), end_of_first(steps_of(journal, rank))));
    std::erase_if(calls.back(), [](const Timed& timed) { return !is_collective(timed.row.kind); });
  }
  const std::vector<StepMark> steps = steps_of(journal, 0);
  for (size_t call = 0; call < calls.front().size(); ++call) {
    const Timed& first = calls.front()[call];
    Time shortest = first.duration();
    for (const std::vector<Timed>& own : calls) {
      shortest = call < own.size() ? std::min(shortest, own[call].duration()) : shortest;
    }
    exchanges_.push_back({{first.row.kind, journal.ranks(), Bytes(first.row.bytes)},
                          shortest,
                          static_cast<int32_t>(trainings_.size()) - 1,
                          step_of(steps, first.index)});
  }
}

void Samples::add_launches(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    const LaneJournal& lane = journal.lane(rank, 0);
    std::optional<Time> last;
    lane.for_each([&](const Row& row) {
      if (is_kernel(row)) {
        const Time issue = lane.completion(row.sequence).issue;
        if (last) {
          launches_[journal.ranks()].push_back(issue - *last);
        }
        last = issue;
      } else if (!is_quiet(row)) {
        last.reset();
      }
    });
  }
}

void Samples::add_training(const OneRun& run, const std::string& name) {
  trainings_.push_back(name);
  for (int32_t rank = 0; rank < run.result.journal->ranks(); ++rank) {
    add_rank(run, rank);
  }
  add_exchanges(run);
  add_launches(run);
}

// ---- communication ----

namespace {

/// The collectives of one rank, or its messages, in order.
std::vector<Timed> calls_of(const Journal& journal, int32_t rank, bool collectives) {
  std::vector<Timed> calls = operations_of(journal.lane(rank, 0), 0);
  std::erase_if(calls, [&](const Timed& call) {
    return collectives ? !is_collective(call.row.kind) : !is_point_to_point(call.row.kind);
  });
  return calls;
}

/// How far the clock of each rank is ahead of that of rank 0: barriers end for all at once, and so
/// do the reductions that are NCCL's barriers.
std::vector<Time> clock_offsets(const std::vector<std::vector<Timed>>& calls) {
  std::vector<Time> offsets;
  for (const std::vector<Timed>& own : calls) {
    std::vector<Time> ahead;
    for (size_t call = 0; call < own.size(); ++call) {
      const OpKind kind = own[call].row.kind;
      if (kind == OpKind::barrier || kind == OpKind::all_reduce) {
        ahead.push_back(own[call].times.finish - calls.front()[call].times.finish);
      }
    }
    offsets.push_back(ahead.empty() ? Time{} : percentiles(std::move(ahead)).median);
  }
  return offsets;
}

/// From when the last of the ranks could begin to when the last one finished.
Time duration_of(const std::vector<std::vector<Timed>>& calls, size_t call,
                 const std::vector<Time>& offsets) {
  Time ready = calls.front()[call].ready - offsets.front();
  Time finish = calls.front()[call].times.finish - offsets.front();
  for (size_t rank = 1; rank < calls.size(); ++rank) {
    ready = std::max(ready, calls[rank][call].ready - offsets[rank]);
    finish = std::max(finish, calls[rank][call].times.finish - offsets[rank]);
  }
  return std::max(Time{}, finish - ready);
}

size_t fewest(const std::vector<std::vector<Timed>>& calls) {
  size_t least = calls.front().size();
  for (const auto& own : calls) {
    least = std::min(least, own.size());
  }
  return least;
}

}  // namespace

void Samples::add_communication(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  std::vector<std::vector<Timed>> collectives;
  std::vector<std::vector<Timed>> messages;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    collectives.push_back(calls_of(journal, rank, true));
    if (rank < 2) {  // who sends and who receives
      messages.push_back(calls_of(journal, rank, false));
    }
  }
  const std::vector<Time> offsets = clock_offsets(collectives);
  std::map<TransferKey, int64_t> seen;
  for (const auto* calls : {&collectives, &messages}) {
    for (size_t call = 0; call < fewest(*calls); ++call) {
      const Row& row = calls->front()[call].row;
      const TransferKey key{row.kind, journal.ranks(), Bytes(row.bytes)};
      if (seen[key]++ > 0) {
        transfers_[key].push_back(duration_of(*calls, call, offsets));
      }
    }
  }
}

}  // namespace lockstep::cli
