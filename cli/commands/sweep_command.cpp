// `sweep`: many settings of one scenario, whole or a shard of them.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/sweep_output.hpp"
#include "cli/input_files.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "rehearsal/run/calibrated.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/sweep/check_cases.hpp"
#include "rehearsal/sweep/run_sweep.hpp"
#include "rehearsal/sweep/sweep_log.hpp"
#include "rehearsal/sweep/sweep_row_of.hpp"

namespace lockstep::cli {

namespace {

SweepCases cases_of(const SweepRequest& request) {
  if (request.vary.empty() == request.vary_file.empty()) {
    throw SweepError(
        request.vary.empty() ? "nothing to vary" : "--vary and --vary-file exclude each other",
        "write --vary trainer.devices=2,4,8, or --vary-file cases.csv");
  }
  return request.vary.empty() ? SweepCases::of_file(request.vary_file)
                              : SweepCases::of_grid(request.vary);
}

// "3/8"
void read_shard(const std::string& text, SweepHeader& header) {
  if (text.empty()) {
    return;
  }
  const size_t slash = std::min(text.find('/'), text.size());
  const auto shard = parse_int(text.substr(0, slash));
  const auto shards = parse_int(text.substr(std::min(slash + 1, text.size())));
  const auto* index = std::get_if<int64_t>(&shard);
  const auto* count = std::get_if<int64_t>(&shards);
  if (index == nullptr || count == nullptr || *count < 1 || *count > SweepCases::most) {
    throw SweepError(fmt::format("--shard takes a shard and how many there are, not `{}`", text),
                     "write --shard 1/8, up to 8/8");
  }
  if (*index < 1 || *index > *count) {
    throw SweepError(fmt::format("there is no shard {} of {}", *index, *count),
                     fmt::format("shards are 1/{0} to {0}/{0}", *count));
  }
  header.shard = *index;
  header.shards = *count;
}

void check_options(const SweepRequest& request) {
  if (request.rows.empty() && (request.resume || !request.shard.empty())) {
    throw SweepError(
        fmt::format("{} needs --out FILE", request.resume ? "--resume" : "--shard"),
        "--out sweep.jsonl keeps the rows: --resume goes on with them, --merge joins shards");
  }
}

// A key that is set for all cases cannot differ between them.
void check_settings(const CaseSource& source, const SweepCases& cases) {
  for (const std::string& setting : source.set) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::ranges::count(cases.keys(), key) > 0) {
      const auto option = source.option_of_key.find(key);
      throw SweepError(fmt::format("`{}` is varied, and {} sets it", key,
                                   option == source.option_of_key.end() ? "--set" : option->second),
                       "remove one of the two");
    }
  }
}

/// The scenario of the cases, and what they read.
struct Inputs {
  CaseSource source;
  Collected collected;
  CheckedCases checked;
};

// Names the one case that is swept.
void choose_case(Inputs& inputs) {
  std::vector<std::string> names;
  for (const Job& job : inputs.collected.jobs) {
    if (job.asked) {
      names.push_back(job.scenario->name);
    }
  }
  if (names.size() > 1) {
    throw SweepError(
        fmt::format("{} has {} cases, and a sweep is of one", inputs.source.path, names.size()),
        fmt::format("write {}:{}", inputs.source.path, names.front()));
  }
  if (!names.empty() && !names.front().empty()) {
    inputs.source.scenario_case = names.front();
  }
}

SweepHeader header_of(const Inputs& inputs, const SweepCases& cases) {
  SweepHeader header;
  header.version = LOCKSTEP_VERSION;
  header.scenario = inputs.source.path;
  if (inputs.source.scenario_case) {
    header.scenario += ":" + *inputs.source.scenario_case;
  }
  std::vector<std::string> files = inputs.checked.files;
  for (const Job& job : inputs.collected.jobs) {
    const std::string calibration = job.asked ? calibration_file(*job.scenario) : "";
    if (!calibration.empty() && std::ranges::count(files, calibration) == 0) {
      files.push_back(calibration);
    }
  }
  header.digest = digest_of_files(files);
  header.settings = inputs.source.set;
  header.keys = cases.keys();
  header.values = cases.is_grid() ? cases.values() : std::vector<std::vector<std::string>>();
  header.digest_of_cases = cases.digest_of_list();
  header.cases = cases.count();
  return header;
}

/// A sweep under way: the rows that there are, and where they are kept.
class RunningSweep {
 public:
  RunningSweep(const Request& request, const SweepHeader& header) : header_(header) {
    if (!request.sweep.rows.empty()) {
      log_.emplace(request.sweep.rows, header, request.sweep.resume);
      lines_ = log_->before().lines;
      in_order_ = log_->before().is_in_order;
    }
  }

  std::vector<int64_t> missing() const {
    std::vector<int64_t> numbers;
    for (int64_t number = 1; number <= header_.cases; ++number) {
      if (is_in_shard(header_, number) && !lines_.contains(number)) {
        numbers.push_back(number);
      }
    }
    return numbers;
  }

  void add(const SweepRow& row) {
    std::string line = line_of(row);
    if (log_) {
      log_->append(line);
    }
    in_order_ = in_order_ && (lines_.empty() || lines_.rbegin()->first < row.number);
    lines_.emplace(row.number, std::move(line));
  }

  // Rows come as they end. A complete file is in the order of the cases, whatever the threads did.
  void finish(const std::string& path) {
    if (log_ && !in_order_) {
      write_atomically(path, sweep_text(header_, lines_));
    }
  }

  std::string notes(const std::string& path) const {
    std::string text;
    if (log_ && log_->before().is_torn) {
      text +=
          fmt::format("note: the last line of {} was not complete; its case runs again\n", path);
    }
    if (log_ && !log_->before().lines.empty()) {
      text += fmt::format("note: {} rows were in {} already\n", log_->before().lines.size(), path);
    }
    return text;
  }

  const std::map<int64_t, std::string>& lines() const { return lines_; }

 private:
  SweepHeader header_;
  std::optional<SweepLog> log_;
  std::map<int64_t, std::string> lines_;
  bool in_order_ = true;
};

// What to do where not all cases have run.
std::string how_to_go_on(const Request& request, size_t missing) {
  std::string again = request.command_line;
  if (!request.sweep.resume) {
    again += " --resume";
  }
  return request.sweep.rows.empty()
             ? fmt::format(
                   "{} cases have not run\n   = --out FILE keeps the rows, so that "
                   "--resume goes on with them\n",
                   missing)
             : fmt::format("{} cases have not run; the others are in {}\n   = go on: {}\n", missing,
                           request.sweep.rows, again);
}

SweepEnd run_missing(const Request& request, const Inputs& inputs, const SweepCases& cases,
                     RunningSweep& sweep, const Deadline& deadline, bool shows_progress) {
  const auto progress = std::make_shared<Progress>(shows_progress);
  const std::vector<int64_t> missing = sweep.missing();
  progress->expect(missing.size());
  RehearseRequest how;
  how.explore = false;
  // Owns all that it uses: a thread may outlive this call.
  const auto run = [how, progress, deadline, source = inputs.source,
                    shared = std::make_shared<const SweepCases>(cases)](int64_t number) {
    progress->case_begins(fmt::format("case {}", number));
    RehearseRequest own = how;
    own.deadline = std::make_shared<const Deadline>(deadline.for_another_case());
    SweepRow row = run_sweep_case(source, *shared, number, own);
    progress->case_ends();
    return row;
  };
  const SweepEnd end = run_sweep(
      missing, run, [&](const SweepRow& row) { sweep.add(row); }, deadline, threads_of(request));
  progress->end();
  if (end.failure) {
    std::rethrow_exception(end.failure);
  }
  return end;
}

void add_incomplete(const Request& request, const Deadline& deadline, size_t missing,
                    Answer& answer) {
  answer.code = deadline.interrupted() ? ExitCode::interrupted : ExitCode::undecided;
  answer.diagnostics += fmt::format("{}: {}", deadline.reason(), how_to_go_on(request, missing));
}

Answer run_cases_of(const Request& request, const Style& style) {
  check_options(request.sweep);
  const SweepCases cases = cases_of(request.sweep);
  Inputs inputs;
  inputs.source = source_of(request, request.arguments.front());
  inputs.source.reader = reading_once();
  inputs.collected = collect(inputs.source);
  check_outputs(request, inputs.collected);
  if (!inputs.collected.diagnostics.empty()) {
    return {"", render(inputs.collected.diagnostics, inputs.collected.sources),
            ExitCode::bad_input};
  }
  choose_case(inputs);
  check_settings(inputs.source, cases);
  inputs.checked = check_cases(inputs.source, cases);
  if (!inputs.checked.diagnostics.empty()) {
    return {"", render(inputs.checked.diagnostics, inputs.checked.sources), ExitCode::bad_input};
  }
  Collected also_read;
  also_read.files = inputs.checked.files;
  check_outputs(request, also_read);
  SweepHeader header = header_of(inputs, cases);
  read_shard(request.sweep.shard, header);
  const SweepOutput output(request, header, cases.values());
  RunningSweep sweep(request, header);
  const Deadline deadline(request.time_limit_s, request.value_memory);
  Answer answer;
  answer.diagnostics = sweep.notes(request.sweep.rows);
  answer.leaves_threads =
      run_missing(request, inputs, cases, sweep, deadline, request.progress || style.progress)
          .leaves_threads;
  const size_t missing = sweep.missing().size();
  if (missing == 0) {
    sweep.finish(request.sweep.rows);
  } else {
    add_incomplete(request, deadline, missing, answer);
  }
  output.add(sweep.lines(), missing == 0, style, answer);
  return answer;
}

}  // namespace

Answer sweep_command(const Request& request, const Style& style) {
  try {
    return request.sweep.merge ? merge_sweeps(request, style) : run_cases_of(request, style);
  } catch (const SweepError& error) {
    return {"", error.what(), error.code()};
  }
}

}  // namespace lockstep::cli
