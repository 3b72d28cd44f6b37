#include "rehearsal/explore/drawn_orders.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t most_orders = 8;
constexpr int64_t most_operations = 150'000;  // in all of them, about a second

// Up to the last step before something is left out, and then as long as later ones took that were
// simulated.
void end_with_simulated_steps(const Journal& journal, DrawnOrders& drawn) {
  const std::span<const RepeatedRows> repeated = journal.repeated_on(0, 0);
  const std::vector<StepMark> steps = steps_of(journal, 0);
  if (repeated.empty() || steps.empty()) {
    return;
  }
  const auto behind = std::ranges::partition_point(
      steps, [&](const StepMark& step) { return step.rows.end <= repeated.front().row; });
  const auto before = std::max<std::ptrdiff_t>(1, behind - steps.begin());
  const Time end = steps[static_cast<size_t>(before - 1)].finish;
  const Time begin = before > 1 ? steps[static_cast<size_t>(before - 2)].finish : Time{};
  drawn.steps = std::ssize(steps);
  drawn.before = end + (end - begin) * (drawn.steps - before);
}

}  // namespace

std::string DrawnOrders::among() const {
  return steps == 0 ? "" : fmt::format(" in the first {} steps", steps);
}

DrawnOrders drawn_orders_of(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  const int64_t own =
      run.result.operations / std::max(1, journal.ranks()) * std::ssize(journal.own_ranks());
  DrawnOrders drawn;
  drawn.orders = static_cast<uint64_t>(
      std::clamp<int64_t>(most_operations / std::max<int64_t>(1, own), 1, most_orders));
  end_with_simulated_steps(journal, drawn);
  return drawn;
}

}  // namespace lockstep::cli
