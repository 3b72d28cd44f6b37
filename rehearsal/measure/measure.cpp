#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/step_samples.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "rehearsal/measure/breakdown.hpp"
#include "rehearsal/measure/left_out_within.hpp"
#include "rehearsal/measure/mean_sent.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "rehearsal/measure/pipeline_times.hpp"
#include "rehearsal/measure/steady_step.hpp"
#include "rehearsal/measure/step_cycle.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/device_reserve.hpp"
#include "rehearsal/run/planned_steps.hpp"
#include "rehearsal/run/samples_per_step.hpp"

namespace lockstep::cli {

namespace {

const DeviceMemory* fullest(const std::map<DeviceId, DeviceMemory>& devices) {
  const DeviceMemory* found = nullptr;
  for (const auto& [device, memory] : devices) {
    if (!is_off_device(device) && (found == nullptr || memory.peak > found->peak)) {
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

using AllSteps = ByRank<std::vector<StepMark>>;

StepSequence sequence_of(const Journal& journal, size_t rank, const std::vector<StepMark>& marks) {
  return {journal.repeated_on(static_cast<int32_t>(rank), 0), marks};
}

// The same step on every rank, where the rank took it.
RowRange rows_of_step(const OneRun& run, size_t rank, const std::vector<StepMark>& marks,
                      const std::optional<int64_t>& counted) {
  if (!counted || marks.empty()) {
    return {};
  }
  const StepSequence sequence = sequence_of(*run.result.journal, rank, marks);
  const int64_t number = *counted < sequence.size() ? *counted : *counted_step(run.world, sequence);
  return marks[sequence.at(number).mark].rows;
}

/// Steps on one and the same batch, the steady one among them: of several optimizers each has its
/// own.
struct SteadySpan {
  Time time{};
  int64_t samples = 0;
  int64_t first = 0;  ///< number of the step
  int64_t last = 0;
};

SteadySpan span_of(const StepSequence& sequence, const std::vector<int64_t>& samples,
                   int64_t steady) {
  const auto samples_of = [&](int64_t step) { return samples[sequence.at(step).mark]; };
  SteadySpan span{{}, 0, steady, steady};
  while (span.first > 0 && samples_of(span.first) == 0) {
    --span.first;
  }
  while (span.last + 1 < sequence.size() && samples_of(span.last + 1) == 0) {
    ++span.last;
  }
  for (int64_t step = span.first; step <= span.last; ++step) {
    span.time += sequence.at(step).length;
    span.samples += samples_of(step);
  }
  return span;
}

bool is_of_layer(const Row& row) {
  return row.row == RowKind::op && row.kind == OpKind::compute &&
         (row.kernel == Kernel::layer_forward || row.kernel == Kernel::layer_backward);
}

// Of forward and backward in these rows of the first lane. A kernel's row keeps its work.
int64_t flops_of_rows(const LaneJournal& lane, const std::vector<RowsAgain>& rows) {
  int64_t flops = 0;
  int64_t index = 0;
  lane.for_each([&](const Row& row) {
    if (is_of_layer(row)) {
      for (const RowsAgain& each : rows) {
        flops += each.begin <= index && index < each.end ? row.bytes * each.times : 0;
      }
    }
    ++index;
  });
  return flops;
}

// In which layers compute most: a strategy may cast them to another type than the Trainer does.
DType type_of_layers(const Journal& journal, DType otherwise) {
  std::map<DType, int64_t> flops;
  journal.lane(0, 0).for_each([&](const Row& row) {
    if (is_of_layer(row)) {
      flops[row.dtype] += row.bytes;
    }
  });
  const auto most = std::ranges::max_element(
      flops, [](const auto& left, const auto& right) { return left.second < right.second; });
  return most == flops.end() ? otherwise : most->first;
}

// On all ranks.
double executed_flops(const Journal& journal, const AllSteps& all, const SteadySpan& span) {
  std::map<int64_t, size_t> ranks_of_flops;  // the sum is the same whether ranks share journals
  for (size_t place = 0; place < all.distinct().size(); ++place) {
    const std::vector<StepMark>& marks = all.distinct()[place];
    const size_t rank = all.first_of(place);
    const StepSequence sequence = sequence_of(journal, rank, marks);
    if (span.last >= sequence.size()) {
      continue;  // it had fewer batches
    }
    std::vector<RowsAgain> rows;
    const auto number = static_cast<int32_t>(rank);
    for (int64_t step = span.first; step <= span.last; ++step) {
      const RowRange& own = marks[sequence.at(step).mark].rows;
      rows.push_back({own.begin, own.end, 1, 0});
      for (const RowsAgain& again : left_out_within(journal, number, marks, own)) {
        if (again.lane == 0) {
          rows.push_back(again);
        }
      }
    }
    const LaneJournal& lane = journal.lane(number, 0);
    ranks_of_flops[flops_of_rows(lane, rows)] += all.ranks_of(place);
  }
  double flops = 0;
  for (const auto& [of_rank, ranks] : ranks_of_flops) {
    flops += static_cast<double>(of_rank) * static_cast<double>(ranks);
  }
  return flops;
}

// What the model needs for these samples, and no more than what was executed: a step may skip
// layers, freeze them, or run some of them again.
double needed_flops(const OneRun& run, const AllSteps& all, const SteadySpan& span) {
  const Network& network = *run.preparation.network;
  const auto whole =
      static_cast<double>((network.forward_flops() + network.backward_flops()).count());
  return std::min(whole * static_cast<double>(span.samples),
                  executed_flops(*run.result.journal, all, span));
}

// Workers of an asynchronous server go on at their own pace: samples of all ranks in a steady step
// of each, over those that they would take at the pace of rank 0. 1 where steps take about as long.
double pace_of_ranks(const OneRun& run, const AllSteps& all) {
  constexpr double alike = 0.05;  // ranks that wait for each other are nearer
  const ByRank<RankLog>& logs = run.preparation.log->ranks;
  double rank_0_s = 0;
  // By time and samples of a step, so that rounding does not depend on how many ranks are
  // simulated.
  std::map<std::pair<double, int64_t>, int64_t> ranks_of_steps;
  bool differ = false;
  for (size_t place = 0; place < all.distinct().size(); ++place) {
    const std::vector<StepMark>& steps = all.distinct()[place];
    const size_t rank = all.first_of(place);
    std::vector<int64_t> counts = samples_of_own_steps(logs[rank]);
    counts.resize(counts.size() == steps.size() ? counts.size() : 0);
    const std::optional<SteadyStep> steady =
        steady_step(sequence_of(*run.result.journal, rank, steps), counts);
    if (!steady || counts.empty() || steady->end <= steady->begin) {
      continue;
    }
    const double step_s = seconds(steady->end - steady->begin);
    rank_0_s = rank == 0 ? step_s : rank_0_s;
    if (rank_0_s <= 0) {
      return 1;  // it takes no steps with samples of its own
    }
    ranks_of_steps[{step_s, counts[steady->mark]}] += static_cast<int64_t>(all.ranks_of(place));
    differ = differ || std::abs(step_s / rank_0_s - 1) > alike;
  }
  double samples = 0;
  double at_own_pace = 0;
  for (const auto& [step, ranks] : ranks_of_steps) {
    const double own = static_cast<double>(step.second) * static_cast<double>(ranks);
    samples += own;
    at_own_pace += own * rank_0_s / step.first;
  }
  return differ && samples > 0 && std::isfinite(at_own_pace) ? at_own_pace / samples : 1;
}

void rate(const OneRun& run, const AllSteps& all, const SteadySpan& span, Results& results) {
  Prediction& prediction = results.prediction;
  if (span.time <= Time{} || span.samples <= 0) {
    return;
  }
  const double span_s = seconds(span.time);
  const double pace = is_real(run.world) ? 1 : pace_of_ranks(run, all);
  prediction.samples_per_s = static_cast<double>(span.samples) / span_s * pace;
  const Network* network = run.preparation.network.get();
  if (network == nullptr) {
    return;
  }
  if (network->input.size() == 1 && network->input_dtype == DType::int64) {
    prediction.tokens_per_s = *prediction.samples_per_s * static_cast<double>(network->input[0]);
  }
  const DeviceModel& device = run.machine.cluster.node.device;
  const DType type = type_of_layers(*run.result.journal, run.preparation.plan.activation_dtype);
  const auto peak = static_cast<double>(device.speed(type).peak.count());
  if (peak > 0) {
    const double used = needed_flops(run, all, span) * pace /
                        (span_s * peak * static_cast<double>(results.devices));
    (used <= 1 ? prediction.mfu : prediction.implausible_mfu) = used;
  }
}

std::optional<double> bubble_of(const OneRun& run, const SteadyStep& steady) {
  const std::vector<int32_t>& ranks = run.preparation.pipeline_ranks;
  double idle_s = 0;
  for (const int32_t rank : ranks) {
    idle_s += seconds(breakdown_of(*run.result.journal, rank, steady.begin, steady.end).idle);
  }
  const double step_s = seconds(steady.end - steady.begin);
  return ranks.empty() || step_s <= 0
             ? std::nullopt
             : std::optional(idle_s / static_cast<double>(ranks.size()) / step_s);
}

// Where steps differ by what they exchange, the one of median length is not the usual one.
void measure_cycle(const OneRun& run, const StepSequence& sequence, const SteadyStep& steady,
                   const std::vector<int64_t>& samples, Prediction& prediction) {
  prediction.steps_of_cycle = run.preparation.log->ranks.front().steps_of_cycle;
  if (prediction.steps_of_cycle > 1) {
    prediction.mean_step_time = mean_of_cycle(sequence, steady, samples, prediction.steps_of_cycle);
  }
}

// Of so many steps.
Time usual_time(const Prediction& prediction, const SteadySpan& span) {
  const int64_t steps = span.last - span.first + 1;
  return prediction.mean_step_time ? *prediction.mean_step_time * steps : span.time;
}

void measure_steps(const OneRun& run, const AllSteps& all, const StepSequence& sequence,
                   const SteadyStep& steady, const std::vector<int64_t>& samples,
                   Results& results) {
  Prediction& prediction = results.prediction;
  prediction.step_time = steady.end - steady.begin;
  prediction.steady = steady.steady;
  prediction.first_step = all.front().front().finish;
  prediction.breakdown = breakdown_of(*run.result.journal, 0, steady.begin, steady.end);
  prediction.ideal_bubble = run.preparation.ideal_bubble;
  prediction.bubble = bubble_of(run, steady);
  prediction.micro_batches =
      simulated_micro_batches(*run.result.journal, 0, all.front()[steady.mark].rows);
  measure_cycle(run, sequence, steady, samples, prediction);
  if (!results.effective_batch_size) {
    return;  // ranks have batches of their own
  }
  if (samples.empty()) {
    rate(run, all,
         {*prediction.usual_step_time(), *samples_per_step(run, results), steady.number,
          steady.number},
         results);
    return;
  }
  SteadySpan span = span_of(sequence, samples, steady.number);
  span.time = usual_time(prediction, span);
  const Preparation& preparation = run.preparation;
  results.effective_batch_size =
      span.samples * preparation.gradients_of_update / preparation.data_parallel_size;
  rate(run, all, span, results);
}

/// The steps that stand for all of a rank, by what they exchange.
struct ExchangingSteps {
  int64_t of_cycle = 1;
  std::vector<int64_t> cycle{};  ///< numbers of the steps of one
};

std::optional<MeanSent> mean_sent(const OneRun& run, size_t rank, const AllSteps& all,
                                  const ExchangingSteps& steps) {
  const std::vector<StepMark>& marks = all[rank];
  if (marks.empty() || (steps.of_cycle != 0 && steps.cycle.empty())) {
    return std::nullopt;
  }
  const Journal& journal = *run.result.journal;
  const StepSequence sequence = sequence_of(journal, rank, marks);
  const auto number = static_cast<int32_t>(rank);
  return steps.of_cycle == 0 ? mean_sent_beside(journal, number, sequence, marks)
                             : mean_sent_in(journal, number, sequence, marks, steps.cycle);
}

ExchangingSteps exchanging_steps(const OneRun& run, const StepSequence& sequence,
                                 const std::optional<SteadyStep>& steady,
                                 const std::vector<int64_t>& samples) {
  ExchangingSteps steps{run.preparation.log->ranks.front().steps_of_cycle};
  if (steady && steps.of_cycle > 1) {
    steps.cycle = steps_of_one_cycle(sequence, *steady, samples, steps.of_cycle);
  }
  return steps;
}

}  // namespace

PartialResults measure_so_far(const OneRun& run) {
  PartialResults so_far;
  so_far.planned_steps = planned_steps(run.preparation);
  so_far.total_time = run.result.total_time;
  if (run.result.journal == nullptr) {
    return so_far;
  }
  const std::vector<StepMark> steps = steps_of(*run.result.journal, 0);
  so_far.steps = count_steps(steps);
  const StepSequence sequence = sequence_of(*run.result.journal, 0, steps);
  const std::vector<int64_t> samples = samples_of_steps(*run.preparation.log, steps.size());
  if (const std::optional<SteadyStep> steady = steady_step(sequence, samples)) {
    so_far.step_time = steady->end - steady->begin;
  }
  if (const DeviceMemory* memory = fullest(run.result.memory.front())) {
    so_far.memory_peak = memory->peak;
  }
  return so_far;
}

Results measure(const OneRun& run) {
  Results results = configuration_of(run);
  const RunResult& result = run.result;
  Prediction& prediction = results.prediction;
  prediction.total_time = result.total_time;
  if (result.journal == nullptr) {
    return results;
  }
  const std::shared_ptr<const RankClasses>& classes = run.preparation.options.classes;
  const auto ranks = static_cast<size_t>(result.journal->ranks());
  AllSteps all(ranks, classes);
  prediction.simulated_ranks = std::ssize(all.distinct());
  for (size_t place = 0; place < all.distinct().size(); ++place) {
    all.distinct()[place] = steps_of(*result.journal, static_cast<int32_t>(all.first_of(place)));
  }
  const std::vector<StepMark>& steps = all.front();
  prediction.steps = count_steps(steps);
  prediction.simulated_steps = static_cast<int64_t>(steps.size());
  const std::vector<int64_t> samples = samples_of_steps(*run.preparation.log, steps.size());
  const StepSequence sequence = sequence_of(*result.journal, 0, steps);
  const std::optional<SteadyStep> steady = steady_step(sequence, samples);
  if (steady) {
    measure_steps(run, all, sequence, *steady, samples, results);
  } else {
    prediction.breakdown = breakdown_of(*result.journal, 0, {}, result.total_time);
  }
  const std::optional<int64_t> counted = counted_step(run.world, sequence, samples);
  const ExchangingSteps exchanging = exchanging_steps(run, sequence, steady, samples);
  results.ranks = ByRank<RankResults>(ranks, classes);
  for (size_t place = 0; place < results.ranks.distinct().size(); ++place) {
    const size_t at = results.ranks.first_of(place);
    const auto rank = static_cast<int32_t>(at);
    RankResults& own = results.ranks.distinct()[place];
    const auto& devices = result.memory[at];
    if (const auto host = devices.find(host_device); host != devices.end()) {
      own.host_peak = host->second.peak;
      own.host_peak_at = moment_of(*result.journal, rank, host->second.peak_buffer, all[at]);
    }
    if (const auto drive = devices.find(drive_device); drive != devices.end()) {
      own.drive_peak = drive->second.peak;
    }
    if (const DeviceMemory* memory = fullest(devices)) {
      own.memory = *memory;
      own.peak_at = moment_of(*result.journal, rank, memory->peak_buffer, all[at]);
    }
    own.takes_steps = steps.size() <= 1 || all[at].size() > 1;
    const RowRange rows = rows_of_step(run, at, all[at], counted);
    own.transfers = transfers_of(*result.journal, rank, rows,
                                 left_out_within(*result.journal, rank, all[at], rows));
    own.mean_sent = mean_sent(run, at, all, exchanging);
    own.reserve = reserve_of(run, rank).total();
    const RankLog& log = run.preparation.log->ranks[at];
    own.movements = log.transfers;
    own.checkpoint_bytes = log.checkpoint_bytes;
  }
  count_samples_of(run, results);
  return results;
}

}  // namespace lockstep::cli
