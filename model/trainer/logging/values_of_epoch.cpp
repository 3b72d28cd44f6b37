// What is logged on_epoch, from the batches to the end of the epoch.
#include <algorithm>

#include "model/trainer/logging/logging.hpp"

namespace lockstep {

// S += v * bs and C += bs for the mean; S += v for the sum (result.py, _ResultMetric.update).
void LoggedResults::accumulate(Result& result, const Logged& logged) {
  const double value = logged.value;
  const auto narrow = [](double wide) { return static_cast<double>(static_cast<float>(wide)); };
  switch (result.call.reduction) {
    case LogReduction::mean:
      result.accumulated = narrow(result.accumulated +
                                  narrow(narrow(value) * static_cast<double>(logged.batch_size)));
      result.batch_sizes += logged.batch_size;
      break;
    case LogReduction::sum: result.accumulated = narrow(result.accumulated + narrow(value)); break;
    case LogReduction::min:
      result.accumulated = result.started ? std::min(result.accumulated, value) : value;
      break;
    case LogReduction::max:
      result.accumulated = result.started ? std::max(result.accumulated, value) : value;
      break;
  }
  result.started = true;
  ++result.batches;
}

// In the order of the batches: what comes behind a value that is not read yet waits for it.
void LoggedResults::log_known(size_t index, double value, int64_t batch_size) {
  Result& result = results_[index];
  if (result.of_epoch.empty()) {
    accumulate(result, {value, batch_size});
  } else {
    result.of_epoch.push_back({value, batch_size});
  }
  if (counts_periods_) {
    of_period_.entries.push_back({index, value, batch_size});
  }
}

Program LoggedResults::gather(Result& result) {
  for (const auto& [on, ticket] : result.follows) {
    if (ticket) {
      co_await interpreter_.streams().settle(ticket, on);
    }
  }
  for (Logged& logged : result.of_epoch) {
    if (logged.tensor) {
      logged.value = co_await read(logged.tensor, result.call.site);
    }
  }
  for (const Logged& logged : result.of_epoch) {
    accumulate(result, logged);
  }
  result.follows.clear();
  result.of_epoch.clear();
}

void LoggedResults::begin_period() {
  counts_periods_ = true;
  of_period_.entries.clear();
}

void LoggedResults::log_left_out(const OfPeriod& period, int64_t times) {
  counts_periods_ = false;
  for (int64_t turn = 0; turn < times; ++turn) {
    for (const auto& [index, value, batch_size] : period.entries) {
      log_known(index, value, batch_size);
    }
  }
  counts_periods_ = true;
}

void LoggedResults::remember(ProgramMemory& memory) const {
  memory.numbers.push_back(std::ssize(results_));
  for (const Result& result : results_) {
    const auto unread = std::ranges::count_if(
        result.of_epoch, [](const Logged& logged) { return logged.tensor != nullptr; });
    memory.numbers.insert(memory.numbers.end(), {result.in_use ? 1 : 0, result.is_reduced ? 1 : 0,
                                                 unread, result.step_value != nullptr ? 1 : 0});
    for (const auto& [on, ticket] : result.follows) {
      memory.numbers.push_back(int64_t{on.value});
      memory.tickets.push_back(ticket);
    }
    if (result.step_value) {
      TensorStore::remember(*result.step_value, memory);
    }
    for (const Logged& logged : result.of_epoch) {
      if (logged.tensor) {
        TensorStore::remember(*logged.tensor, memory);
      }
    }
  }
}

}  // namespace lockstep
