#include "cli/render/logs/write_logs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>

#include "cli/render/logs/logged_rows.hpp"
#include "cli/render/over_time/memory_over_time.hpp"
#include "cli/render/over_time/moment_edges.hpp"
#include "cli/render/over_time/utilization.hpp"
#include "io/events/tensorboard_events.hpp"
#include "properties/finding.hpp"
#include "rehearsal/elastic/elastic_job.hpp"
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

std::vector<MonitorRow> monitor_rows(const OneRun& run, const Prediction& prediction,
                                     const StepTimes& times, const PlaceInTraining& place,
                                     Time& period) {
  std::vector<MonitorRow> rows;
  const Journal& journal = *run.result.journal;
  std::vector<int32_t> ranks = journal.own_ranks();
  ranks.resize(std::min<size_t>(ranks.size(), ranks_max_of_monitor));
  for (const int32_t rank : ranks) {
    const std::optional<Utilization> seen = utilization_of(run, prediction, rank, samples_max);
    if (!seen) {
      return {};
    }
    period = seen->period;
    const MemoryOverTime memory(journal, rank, left_out_stretches(journal, rank));
    for (const UtilizationSample& sample : seen->samples) {
      const int64_t steps = place.first_step + times.ended_at(sample.until);
      rows.push_back({steps, rank, sample, memory.at(sample.until)});
      rows.back().sample.until += place.began;
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
  if (rehearsal.run.preparation.options.numerics) {
    return std::nullopt;
  }
  RunRequest how{World::simulated, false, {}, deadline};
  how.arithmetic = Arithmetic::always;
  OneRun valued = run_once(*rehearsal.scenario, how);
  const bool has_values = valued.ran && valued.undecided.empty() && !valued.result.hung &&
                          valued.preparation.options.numerics;
  return has_values ? std::optional(std::move(valued)) : std::nullopt;
}

Recorded recorded_of(const OneRun& run, const OneRun* valued, const Prediction& prediction,
                     const PlaceInTraining& place) {
  const Journal& journal = *run.result.journal;
  const StepTimes times(run, left_out_stretches(journal, 0), evaluations_of(journal, 0));
  Recorded recorded;
  recorded.logged = logged_rows(run, valued, times, place, rows_max);
  recorded.monitor = monitor_rows(run, prediction, times, place, recorded.period);
  return recorded;
}

void write_recorded(const Recorded& recorded, const std::string& folder) {
  const std::vector<std::string> files = log_files(folder);
  write_atomically(files[0], metrics_csv(recorded.logged));
  write_atomically(files[1], monitor_csv(recorded.monitor));
  write_atomically(files[2], events_of(recorded));
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

std::string nothing_written(const std::string& folder, const std::string& why) {
  return fmt::format("logs: nothing is written to {}: {}\n", folder, why);
}

bool is_job_of_attempts(const Rehearsal& rehearsal) {
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  return elastic && elastic->attempts.size() > 1 && !is_real(rehearsal.world) &&
         rehearsal.why_no_prediction().empty();
}

// Each start of a program has a logger of its own, with a folder of its own.
std::string write_logs_of_attempts(const Rehearsal& rehearsal, const std::string& folder,
                                   const Deadline* deadline) {
  const std::vector<AttemptResult>& attempts = rehearsal.results.elastic->attempts;
  RunRequest how{World::simulated, false, {}, deadline};
  const std::vector<OneRun> valued = runs_of_job(how, *rehearsal.scenario);
  how.arithmetic = Arithmetic::where_it_decides;
  const std::vector<OneRun> priced = runs_of_job(how, *rehearsal.scenario);
  if (priced.size() != attempts.size()) {
    return nothing_written(folder, "its attempts do not come as far without values");
  }
  const int64_t steps = attempts.back().last_step;
  const int64_t epochs = priced.back().preparation.log->ranks.front().epochs;
  std::string text;
  for (size_t number = 0; number < attempts.size(); ++number) {
    PlaceInTraining place{attempts[number].first_step, attempts[number].began};
    place.steps_of_epoch = epochs > 0 && steps % epochs == 0 ? steps / epochs : 0;
    const bool has_values =
        valued.size() == attempts.size() && valued[number].preparation.options.numerics;
    const Recorded recorded = recorded_of(priced[number], has_values ? &valued[number] : nullptr,
                                          rehearsal.results.prediction, place);
    const std::string own = fmt::format("{}/attempt_{}", folder, number);
    std::error_code error;  // of which the files tell
    std::filesystem::create_directory(own, error);
    write_recorded(recorded, own);
    text += told(recorded, own);
  }
  return text;
}

}  // namespace

std::vector<std::string> log_files(const std::string& folder) {
  return {folder + "/metrics.csv", folder + "/monitor.csv",
          folder + "/events.out.tfevents.0.lockstep"};
}

std::string write_logs(const Rehearsal& rehearsal, const std::string& folder,
                       const Deadline* deadline) {
  if (is_job_of_attempts(rehearsal)) {
    return write_logs_of_attempts(rehearsal, folder, deadline);
  }
  if (!is_of_one_run(rehearsal)) {
    const std::string why = rehearsal.why_no_prediction();
    return nothing_written(folder, why.empty() ? "the prediction is made of several runs" : why);
  }
  const std::optional<OneRun> valued = run_with_values(rehearsal, deadline);
  const Recorded recorded =
      recorded_of(rehearsal.run, valued ? &*valued : nullptr, rehearsal.results.prediction, {});
  write_recorded(recorded, folder);
  return told(recorded, folder);
}

}  // namespace lockstep::cli
