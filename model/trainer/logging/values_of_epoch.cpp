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

// In the order of the batches: those that were left out come behind those that they repeat.
void LoggedResults::accumulate(Result& result, size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at) {
    const Logged& logged = result.of_epoch[at];
    if (logged.times == 0) {
      accumulate(result, logged);
    }
    for (int64_t turn = 0; turn < logged.times; ++turn) {
      accumulate(result, logged.begin, logged.end);
    }
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
  accumulate(result, 0, result.of_epoch.size());
  result.follows.clear();
  result.of_epoch.clear();
}

std::vector<size_t> LoggedResults::counted() const {
  std::vector<size_t> counts;
  for (const Result& result : results_) {
    counts.push_back(result.of_epoch.size());
  }
  return counts;
}

void LoggedResults::repeat_since(const std::vector<size_t>& earlier, int64_t times) {
  for (size_t index = 0; index < std::min(earlier.size(), results_.size()); ++index) {
    Result& result = results_[index];
    if (earlier[index] < result.of_epoch.size()) {
      result.of_epoch.push_back({0, 0, {}, times, earlier[index], result.of_epoch.size()});
    }
  }
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
