#include "rehearsal/explore/first_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "rehearsal/findings/missing_values.hpp"
#include "rehearsal/run/planned_steps.hpp"

namespace lockstep::cli {

namespace {

// Fewer where rounding was carried so far that weights could not be judged.
constexpr int64_t fewer = 8;

// At least one, below those of the whole training. 0: there is nothing to add.
int64_t steps_with_values(const Rehearsal& rehearsal) {
  const Preparation& preparation = rehearsal.run.preparation;
  const bool ended = !rehearsal.hung && rehearsal.undecided.empty() && !rehearsal.results.elastic;
  const std::optional<int64_t> planned = planned_steps(preparation);
  if (is_real(rehearsal.world) || !ended || !planned) {
    return 0;
  }
  if (rehearsal.rounding_carries) {
    return *planned / fewer;
  }
  if (!preparation.affordable_part) {
    return 0;
  }
  const auto affordable = static_cast<int64_t>(
      std::floor(*preparation.affordable_part * static_cast<double>(*planned)));
  return affordable < *planned ? affordable : 0;
}

void tell_stopped(const Deadline& deadline, int64_t steps, Rehearsal& rehearsal) {
  rehearsal.coverage.not_looked_at.push_back(
      fmt::format("values of steps 1 to {} ({})", steps, deadline.reason()));
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = deadline.reason();
  }
}

// The first steps of the training, with values; nothing where they do not run.
std::optional<Rehearsal> rehearse_first(const CaseSource& source, const RehearseRequest& request,
                                        const Rehearsal& whole, int64_t steps) {
  CaseSource first = source;
  first.set.push_back(fmt::format("trainer.max_steps={}", steps));
  first.set.emplace_back("verify.numerics=true");
  first.set.emplace_back("verify.world_sizes=[]");
  LoadedScenarios loaded = first.load();
  if (!loaded.ok() || loaded.scenarios.size() != 1) {
    return std::nullopt;
  }
  tell(request.progress.get(), fmt::format("the values of {} steps", steps));
  RehearseRequest how = request;
  how.find_smallest = false;
  how.advise = false;
  how.first_values = false;
  Rehearsal with_values =
      rehearse(first, std::make_shared<const Scenario>(std::move(loaded.scenarios.front())),
               whole.sources, how);
  return with_values.run.ran && with_values.undecided.empty()
             ? std::optional(std::move(with_values))
             : std::nullopt;
}

bool compares_values(const Finding& finding) {
  return finding.code == "LS305" || finding.code == "LS306";
}

}  // namespace

void add_first_values(const CaseSource& source, const RehearseRequest& request,
                      Rehearsal& rehearsal) {
  int64_t steps = steps_with_values(rehearsal);
  if (steps < 1) {
    return;
  }
  const int64_t affordable = steps;
  std::optional<Rehearsal> with_values = rehearse_first(source, request, rehearsal, steps);
  while (with_values && with_values->rounding_carries && steps > 1) {
    steps = std::max<int64_t>(1, steps / fewer);
    with_values = rehearse_first(source, request, rehearsal, steps);
  }
  if (!with_values) {
    if (request.deadline != nullptr && request.deadline->passed()) {
      tell_stopped(*request.deadline, affordable, rehearsal);
    }
    return;
  }
  rehearsal.sites.merge(with_values->sites);
  for (Finding& finding : with_values->findings) {
    const bool is_known = std::ranges::any_of(rehearsal.findings, [&](const Finding& known) {
      return known.code == finding.code && known.title == finding.title;
    });
    if (compares_values(finding) && !is_known) {
      if (finding.when == "after training") {
        finding.when = fmt::format("after step {}, the last whose values are computed", steps);
      }
      rehearsal.findings.push_back(std::move(finding));
    }
  }
  std::vector<std::string>& not_looked_at = rehearsal.coverage.not_looked_at;
  std::ranges::replace(
      not_looked_at, missing_values(rehearsal.run),
      fmt::format("values of parameters, gradients and losses from step {} on: {} (all of them: "
                  "--all-steps); not judged: logged losses, and expectations on values",
                  steps + 1, rehearsal.run.preparation.why_without_values));
  rehearsal.coverage.looked_at.push_back(
      rehearsal.rounding_carries
          ? fmt::format("the same samples on one device for steps 1 to {}", steps)
          : fmt::format("values of steps 1 to {}, with every step simulated", steps));
  if (steps < affordable && !rehearsal.rounding_carries) {
    not_looked_at.push_back(
        fmt::format("one device beyond step {} (where each step rounds otherwise, its weights end "
                    "as far apart)",
                    steps));
  }
}

}  // namespace lockstep::cli
