#include "rehearsal/accuracy/predict_rows.hpp"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include "rehearsal/measure/measure.hpp"
#include "rehearsal/progress.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

namespace {

std::string first_message(const OneRun& run) {
  for (const Problem& problem : run.problems) {
    if (problem.kind != Problem::Kind::note) {
      return problem.message;
    }
  }
  return run.undecided.empty() ? "the run does not end" : run.undecided;
}

PredictedRow predicted_row(const ThroughputRow& row, const std::string& software,
                           const Deadline& deadline) {
  const RowScenario scenario = scenario_of(row);
  PredictedRow result{.id = row.id(),
                      .group = scenario.group,
                      .is_data_parallel = scenario.is_data_parallel,
                      .measured = scenario.samples_per_s,
                      .why_not = scenario.why_not};
  if (scenario.yaml.empty()) {
    return result;
  }
  std::vector<std::string> settings;
  if (software.empty()) {  // judged by constants to which its own source did not contribute
    settings.push_back(fmt::format("versions.kernels={} without {}", scenario.group.software,
                                   scenario.group.source));
  } else if (software != "none") {
    settings.push_back("versions.kernels=" + software);
  }
  const RowRun run = run_of_row(scenario.yaml, settings, deadline);
  result.predicted = run.samples_per_s;
  result.why_not = run.why_not;
  return result;
}

}  // namespace

RowRun run_of_row(const std::string& yaml, const std::vector<std::string>& settings,
                  const Deadline& deadline) {
  CaseSource source;
  source.path = "row.yaml";
  source.set = settings;
  source.reader = [&yaml](const std::string&, size_t) {
    return std::variant<std::string, FileError>(yaml);
  };
  const LoadedScenarios loaded = source.load();
  if (!loaded.ok()) {
    return {.why_not = loaded.diagnostics.front().message};
  }
  const Deadline own = deadline.for_another_case();
  RunRequest request;
  request.deadline = &own;
  request.arithmetic = Arithmetic::never;
  const OneRun run = run_once(loaded.scenarios.front(), request);
  if (run.ran && ran_out_of_memory(run)) {
    return {.why_not = "more memory is predicted than the GPU has"};
  }
  if (!run.ran || run.result.hung || !run.undecided.empty()) {
    return {.why_not = first_message(run)};
  }
  const Results results = measure(run);
  if (!results.prediction.samples_per_s) {
    return {.why_not = "no step was taken"};
  }
  return {.samples_per_s = results.prediction.samples_per_s};
}

std::vector<PredictedRow> predict_rows(const std::vector<ThroughputRow>& rows,
                                       const std::string& software, const Deadline& deadline,
                                       int threads, Progress* progress) {
  if (progress != nullptr) {
    progress->expect(rows.size(), "rows");
  }
  std::vector<PredictedRow> predicted(rows.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t at = next.fetch_add(1); at < rows.size() && !failed; at = next.fetch_add(1)) {
      try {
        if (progress != nullptr) {
          progress->case_begins(rows[at].id());
        }
        predicted[at] = predicted_row(rows[at], software, deadline);
        if (progress != nullptr) {
          progress->case_ends();
        }
      } catch (...) {
        if (!failed.exchange(true)) {
          failure = std::current_exception();
        }
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < std::max(1, threads); ++worker) {
      workers.emplace_back(work);
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  return predicted;
}

}  // namespace lockstep::cli
