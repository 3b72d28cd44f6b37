#include "cli/measure.hpp"

#include <algorithm>
#include <array>

#include "cli/configuration.hpp"

namespace lockstep::cli {

namespace {

enum Activity : size_t { compute, optimizer, communication, data, host, activity_count };

bool is_optimizer(const Row& row) {
  return row.row == RowKind::op && row.kind == OpKind::compute &&
         (row.kernel == Kernel::sgd_step || row.kernel == Kernel::adam_step ||
          row.kernel == Kernel::squared_norm || row.kernel == Kernel::clip_by_norm ||
          row.kernel == Kernel::clip_by_value);
}

bool begins_forward(const Row& row) {
  return row.row == RowKind::op && row.kind == OpKind::compute &&
         (row.kernel == Kernel::layer_forward || row.kernel == Kernel::loss_forward);
}

std::optional<Activity> activity_of(const Row& row) {
  if (row.row != RowKind::op || row.kind == OpKind::event) {
    return std::nullopt;
  }
  if (row.stream.queue() == queue::data || row.kind == OpKind::copy) {
    return data;
  }
  if (is_communication(row.kind)) {
    return communication;
  }
  if (row.kind == OpKind::host) {
    return host;
  }
  return is_optimizer(row) ? optimizer : compute;
}

struct Edge {
  Time at{};
  int change = 0;
  Activity activity = compute;
};

std::vector<Edge> edges_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  std::vector<Edge> edges;
  for (int32_t number = 0; number < journal.lanes(rank); ++number) {
    const LaneJournal& lane = journal.lane(rank, number);
    lane.for_each([&](const Row& row) {
      const std::optional<Activity> activity = activity_of(row);
      if (!activity) {
        return;
      }
      const Completion done = lane.completion(row.sequence);
      const Time from = std::max(done.start, begin);
      const Time until = std::min(done.finish, end);
      if (done.outcome == Outcome::ok && from < until) {
        edges.push_back({from, 1, *activity});
        edges.push_back({until, -1, *activity});
      }
    });
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& left, const Edge& right) { return left.at < right.at; });
  return edges;
}

void count_span(Breakdown& parts, const std::array<int, activity_count>& active, Time span) {
  if (active[compute] > 0) {
    parts.compute += span;
  } else if (active[optimizer] > 0) {
    parts.optimizer += span;
  } else if (active[communication] > 0) {
    parts.exposed_communication += span;
  } else if (active[data] > 0) {
    parts.data += span;
  } else if (active[host] > 0) {
    parts.host += span;
  } else {
    parts.idle += span;
  }
  parts.communication += active[communication] > 0 ? span : Time{};
  const bool busy = active[compute] > 0 || active[optimizer] > 0 || active[communication] > 0;
  parts.busy += busy ? span : Time{};
}

const DeviceMemory* fullest(const std::map<DeviceId, DeviceMemory>& devices) {
  const DeviceMemory* found = nullptr;
  for (const auto& [device, memory] : devices) {
    if (device != host_device && (found == nullptr || memory.peak > found->peak)) {
      found = &memory;
    }
  }
  return found;
}

void count_samples_of(const OneRun& run, Results& results) {
  for (const char* stage : {"train", "validation", "test", "predict"}) {
    if (const std::optional<SampleCounts> counts = sample_counts(run, stage, 0)) {
      results.samples_repeated = counts->repeated;
      results.samples_missed = counts->missed;
      return;
    }
  }
}

void rate(const OneRun& run, Results& results) {
  Prediction& prediction = results.prediction;
  if (!prediction.step_time || *prediction.step_time <= Time{} || !results.effective_batch_size) {
    return;
  }
  const double step_s = seconds(*prediction.step_time);
  const double samples = static_cast<double>(*results.effective_batch_size);
  prediction.samples_per_s = samples / step_s;
  const Network* network = run.preparation.network.get();
  if (network == nullptr) {
    return;
  }
  if (network->input.size() == 1 && network->input_dtype == DType::int64) {
    prediction.tokens_per_s = *prediction.samples_per_s * static_cast<double>(network->input[0]);
  }
  const DeviceModel& device = run.machine.cluster.node.device;
  const double flops =
      static_cast<double>((network->forward_flops() + network->backward_flops()).count());
  const double peak =
      static_cast<double>(device.speed(run.preparation.plan.activation_dtype).peak.count());
  if (peak > 0) {
    prediction.mfu =
        flops * *prediction.samples_per_s / (peak * static_cast<double>(results.devices));
  }
}

}  // namespace

std::vector<StepMark> steps_of(const Journal& journal, int32_t rank) {
  std::vector<StepMark> steps;
  const LaneJournal& lane = journal.lane(rank, 0);
  int64_t index = 0;
  int64_t begin = 0;
  bool fresh = true;
  lane.for_each([&](const Row& row) {
    if (is_optimizer(row)) {
      if (fresh) {
        steps.push_back({{begin, index + 1}, {}});
      }
      fresh = false;
      steps.back().rows.end = index + 1;
      steps.back().finish = std::max(steps.back().finish, lane.completion(row.sequence).finish);
      begin = index + 1;
    } else if (begins_forward(row)) {
      fresh = true;
    }
    ++index;
  });
  return steps;
}

std::optional<SteadyStep> steady_step(const std::vector<StepMark>& steps) {
  if (steps.empty()) {
    return std::nullopt;
  }
  if (steps.size() == 1) {
    return SteadyStep{{}, steps[0].finish, steps[0].rows, false};
  }
  std::vector<size_t> order;
  for (size_t step = 1; step < steps.size(); ++step) {
    order.push_back(step);
  }
  const auto length = [&](size_t step) { return steps[step].finish - steps[step - 1].finish; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t left, size_t right) { return length(left) < length(right); });
  const size_t median = order[(order.size() - 1) / 2];
  return SteadyStep{steps[median - 1].finish, steps[median].finish, steps[median].rows, true};
}

Breakdown breakdown_of(const Journal& journal, int32_t rank, Time begin, Time end) {
  Breakdown parts;
  std::array<int, activity_count> active{};
  Time now = begin;
  for (const Edge& edge : edges_of(journal, rank, begin, end)) {
    count_span(parts, active, edge.at - now);
    active[edge.activity] += edge.change;
    now = edge.at;
  }
  count_span(parts, active, end - now);
  return parts;
}

Results measure(const OneRun& run) {
  Results results = configuration_of(run);
  const RunResult& result = run.result;
  Prediction& prediction = results.prediction;
  prediction.total_time = result.total_time;
  if (result.journal == nullptr) {
    return results;
  }
  const std::vector<StepMark> steps = steps_of(*result.journal, 0);
  prediction.steps = static_cast<int64_t>(steps.size());
  const std::optional<SteadyStep> steady = steady_step(steps);
  if (steady) {
    prediction.step_time = steady->end - steady->begin;
    prediction.steady = steady->steady;
    prediction.first_step = steps.front().finish;
    prediction.breakdown = breakdown_of(*result.journal, 0, steady->begin, steady->end);
  } else {
    prediction.breakdown = breakdown_of(*result.journal, 0, {}, result.total_time);
  }
  for (int32_t rank = 0; rank < result.journal->ranks(); ++rank) {
    RankResults& own = results.ranks.emplace_back();
    if (const DeviceMemory* memory = fullest(result.memory[static_cast<size_t>(rank)])) {
      own.memory = *memory;
    }
    const auto step = rank == 0 ? steady : steady_step(steps_of(*result.journal, rank));
    own.transfers = transfers_of(*result.journal, rank, step ? step->rows : RowRange{});
    own.movements = run.preparation.log->ranks[static_cast<size_t>(rank)].transfers;
    own.metrics = run.preparation.log->ranks[static_cast<size_t>(rank)].metrics;
  }
  count_samples_of(run, results);
  rate(run, results);
  return results;
}

}  // namespace lockstep::cli
