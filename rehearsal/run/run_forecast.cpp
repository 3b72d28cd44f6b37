#include "rehearsal/run/run_forecast.hpp"

#include <fmt/format.h>

#include "properties/finding.hpp"
#include "rehearsal/progress.hpp"
#include "rehearsal/run/one_run.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

RunForecast forecast(int64_t ranks, int64_t operations_of_rank) {
  constexpr double seconds_of_operation = 1.5e-6;
  constexpr int64_t bytes_of_operation = 110;  // rows and completions of the journal, and their
                                               // part of what a rank keeps at any time
  RunForecast result;
  result.ranks = ranks;
  result.operations = ranks * operations_of_rank;
  result.seconds = static_cast<double>(result.operations) * seconds_of_operation;
  result.memory = Bytes(bytes_of_operation) * result.operations;
  return result;
}

std::string text_of(const RunForecast& forecast) {
  return fmt::format("{} ranks differ, so each is simulated: about {} operations, {:.0f} s and {}",
                     forecast.ranks, number_text(static_cast<double>(forecast.operations)),
                     forecast.seconds, bytes_text(forecast.memory.count()));
}

int64_t simulated_ranks(const OneRun& run) {
  const RunOptions& options = run.preparation.options;
  return options.classes == nullptr ? options.world_size
                                    : static_cast<int64_t>(options.classes->size());
}

namespace {

// Lists and values take more, and the orders that follow the first one take what it took.
bool is_forecast(const OneRun& run, const RunRequest& request) {
  return request.progress != nullptr && !request.lists && !request.schedule.is_drawn() &&
         !run.preparation.options.numerics;
}

}  // namespace

// Ranks that faults make different would else be alike, and one that stands for them tells how many
// operations each of them has.
void tell_forecast(const OneRun& run, const Scenario& scenario, const RunRequest& request) {
  constexpr int64_t many_ranks = 512;
  constexpr int32_t few_ranks = 16;
  if (!is_forecast(run, request) || scenario.faults.empty() || simulated_ranks(run) < many_ranks) {
    return;
  }
  Scenario healthy = scenario;
  healthy.faults.clear();
  RunRequest how = request;
  how.progress = nullptr;
  how.simulated_ranks_max = few_ranks;
  const OneRun alike = run_once(healthy, how);
  if (alike.ran) {
    const int64_t each = alike.result.simulated_operations / simulated_ranks(alike);
    request.progress->announce(text_of(forecast(simulated_ranks(run), each)));
  }
}

}  // namespace lockstep::cli
