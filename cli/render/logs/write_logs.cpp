#include "cli/render/logs/write_logs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/render/logs/logged_rows.hpp"
#include "cli/render/over_time/memory_over_time.hpp"
#include "cli/render/over_time/moment_edges.hpp"
#include "cli/render/over_time/utilization.hpp"
#include "io/events/tensorboard_events.hpp"
#include "properties/finding.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/sweep/csv_cells.hpp"
#include "rehearsal/text/number_text.hpp"
#include "rehearsal/text/printable.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t rows_max = 10'000;
constexpr int64_t samples_max = 500;
constexpr int32_t ranks_max_of_monitor = 8;

/// What a monitor sees of one rank at one time.
struct MonitorRow {
  int64_t step = 0;  ///< optimizer steps that had ended
  int32_t rank = 0;
  UtilizationSample sample;
  Bytes memory{};
};

struct Recorded {
  LoggedRows logged;
  std::vector<MonitorRow> monitor;
  Time period{};  ///< of the monitor; 0: it saw nothing
};

// Values as they were computed; times and shares with as many digits as they are worth.
std::string number_cell(double value) { return fmt::format("{}", value); }
std::string time_cell(Time time) { return fmt::format("{:.12g}", seconds(time)); }
std::string share_cell(double share) { return fmt::format("{:.6g}", share); }

std::vector<MonitorRow> monitor_rows(const Rehearsal& rehearsal, const StepTimes& times,
                                     Time& period) {
  std::vector<MonitorRow> rows;
  const Journal& journal = *rehearsal.run.result.journal;
  std::vector<int32_t> ranks = journal.own_ranks();
  ranks.resize(std::min<size_t>(ranks.size(), ranks_max_of_monitor));
  for (const int32_t rank : ranks) {
    const std::optional<Utilization> seen = utilization_of(rehearsal, rank, samples_max);
    if (!seen) {
      return {};
    }
    period = seen->period;
    const MemoryOverTime memory(journal, rank,
                                left_out_stretches(journal, rank, rehearsal.run.result.total_time));
    for (const UtilizationSample& sample : seen->samples) {
      rows.push_back({times.ended_at(sample.until), rank, sample, memory.at(sample.until)});
    }
  }
  std::ranges::stable_sort(rows, {}, [](const MonitorRow& row) { return row.sample.until; });
  return rows;
}

// As Lightning's CSVLogger: a column for each key, a row for each call, and nothing where a row
// lacks a key.
std::string metrics_csv(const LoggedRows& logged) {
  std::set<std::string> keys;
  for (const LoggedRow& row : logged.rows) {
    for (const auto& [key, value] : row.values) {
      keys.insert(key);
    }
  }
  keys.insert(logged.empty.begin(), logged.empty.end());
  std::string text = "epoch,step,time_s";
  for (const std::string& key : keys) {
    text += "," + csv_cell(printable(key));
  }
  text += "\n";
  for (const LoggedRow& row : logged.rows) {
    text += fmt::format("{},{},{}", row.epoch ? std::to_string(*row.epoch) : "", row.step,
                        row.time ? time_cell(*row.time) : "");
    for (const std::string& key : keys) {
      const auto value = row.values.find(key);
      text += "," + (value == row.values.end() ? "" : number_cell(value->second));
    }
    text += "\n";
  }
  return text;
}

std::string monitor_csv(const std::vector<MonitorRow>& rows) {
  std::string text = "time_s,step,rank,gpu_utilization,working";
  for (size_t kind = 1; kind < moment_count; ++kind) {
    text += fmt::format(",{}", key_of(static_cast<Moment>(kind)));
  }
  text += ",evaluating,memory_allocated_bytes\n";
  for (const MonitorRow& row : rows) {
    text += fmt::format("{},{},{},{},{}", time_cell(row.sample.until), row.step, row.rank,
                        share_cell(row.sample.kernel_ran), share_cell(row.sample.working));
    for (size_t kind = 1; kind < moment_count; ++kind) {
      text += "," + share_cell(row.sample.share[kind]);
    }
    text += fmt::format(",{},{}\n", share_cell(row.sample.evaluating), row.memory.count());
  }
  return text;
}

// Times are those since the start: a simulation has no date.
std::string events_of(const Recorded& recorded) {
  std::string bytes = tfrecord(version_event(0));
  const auto add = [&bytes](Time time, int64_t step, const std::string& tag, double value) {
    bytes += tfrecord(scalar_event(seconds(time), step, tag, static_cast<float>(value)));
  };
  for (const LoggedRow& row : recorded.logged.rows) {
    if (row.time && row.epoch) {
      add(*row.time, row.step, "epoch", static_cast<double>(*row.epoch));
    }
    for (const auto& [key, value] : row.values) {
      add(row.time.value_or(Time{}), row.step, key, value);
    }
  }
  for (const MonitorRow& row : recorded.monitor) {
    const std::string of = fmt::format("monitor/rank_{}/", row.rank);
    const Time at = row.sample.until;
    add(at, row.step, of + "gpu_utilization", row.sample.kernel_ran);
    add(at, row.step, of + "working", row.sample.working);
    add(at, row.step, of + "memory_allocated_bytes", static_cast<double>(row.memory.count()));
  }
  return bytes;
}

// Values that are computed where the scenario allows it; nothing where they are already, or cannot
// be.
std::optional<OneRun> run_with_values(const Rehearsal& rehearsal, const Deadline* deadline) {
  if (rehearsal.run.preparation.options.numerics || rehearsal.results.elastic) {
    return std::nullopt;
  }
  RunRequest how{World::simulated, false, {}, deadline};
  how.arithmetic = Arithmetic::always;
  OneRun valued = run_once(*rehearsal.scenario, how);
  const bool has_values = valued.ran && valued.undecided.empty() && !valued.result.hung &&
                          valued.preparation.options.numerics;
  return has_values ? std::optional(std::move(valued)) : std::nullopt;
}

std::string told(const Recorded& recorded, const std::string& folder) {
  const LoggedRows& logged = recorded.logged;
  std::string text = fmt::format(
      "logs: {} of {}/metrics.csv, one every {}{}\n", plural(std::ssize(logged.rows), "row"),
      folder, plural(logged.every_steps * logged.stride, "step"),
      logged.stride > 1 ? fmt::format(" (log_every_n_steps {}: each {}th row is kept)",
                                      logged.every_steps, logged.stride)
                        : "");
  if (!logged.empty.empty()) {
    text += fmt::format("      not computed, so left empty: {}\n", fmt::join(logged.empty, ", "));
  }
  text += recorded.monitor.empty()
              ? "      monitor.csv is empty: this run has no GPUs over time to show\n"
              : fmt::format("      {} of monitor.csv, one every {} and rank\n",
                            plural(std::ssize(recorded.monitor), "row"),
                            time_text(recorded.period.count()));
  return text;
}

}  // namespace

std::vector<std::string> log_files(const std::string& folder) {
  return {folder + "/metrics.csv", folder + "/monitor.csv",
          folder + "/events.out.tfevents.0.lockstep"};
}

std::string write_logs(const Rehearsal& rehearsal, const std::string& folder,
                       const Deadline* deadline) {
  if (!is_of_one_run(rehearsal)) {
    const std::string why = rehearsal.why_no_prediction();
    return fmt::format("logs: nothing is written to {}: {}\n", folder,
                       why.empty() ? "the prediction is made of several runs" : why);
  }
  const RunResult& result = rehearsal.run.result;
  const std::vector<LeftOutStretch> stretches =
      left_out_stretches(*result.journal, 0, result.total_time);
  const StepTimes times(rehearsal.run, stretches, evaluations_of(*result.journal, 0, stretches));
  const std::optional<OneRun> valued = run_with_values(rehearsal, deadline);
  Recorded recorded;
  recorded.logged = logged_rows(rehearsal, valued ? &*valued : nullptr, times, rows_max);
  recorded.monitor = monitor_rows(rehearsal, times, recorded.period);
  const std::vector<std::string> files = log_files(folder);
  write_atomically(files[0], metrics_csv(recorded.logged));
  write_atomically(files[1], monitor_csv(recorded.monitor));
  write_atomically(files[2], events_of(recorded));
  return told(recorded, folder);
}

}  // namespace lockstep::cli
