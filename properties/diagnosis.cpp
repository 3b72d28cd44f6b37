#include "properties/diagnosis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "properties/matched_collectives.hpp"
#include "properties/matched_parts.hpp"
#include "properties/memory_fits.hpp"
#include "properties/no_deadlock.hpp"
#include "properties/no_race.hpp"
#include "properties/slow_participant.hpp"
#include "properties/waiting_text.hpp"

namespace lockstep {

namespace {

constexpr size_t waits_told_max = 4;

// The symptoms and the cost.
std::string visible_text(const RunResult& run, const DiagnosisOptions& options, Time timeout) {
  const int64_t ranks = run.journal->ranks();
  if (timeout == Time::max()) {
    return fmt::format(
        "{} waits without limit: all {} ranks stay busy until the job's own time "
        "is over",
        name_of(options.backend), ranks);
  }
  const std::string limit = time_text(timeout.count());
  const double hours = seconds(timeout) / 3600 * static_cast<double>(ranks);
  const std::string cost = fmt::format("({} {} x {} = {:.1f} GPU hours)", ranks,
                                       ranks == 1 ? "GPU" : "GPUs", limit, hours);
  if (options.backend == Backend::gloo) {
    return fmt::format("the waiting ranks raise a timeout error after {} {}", limit, cost);
  }
  return fmt::format(
      "waiting GPUs show 100 % use and no error; the watchdog ends the job after "
      "{} {}",
      limit, cost);
}

// A pair that completes with the wrong values holds nobody up.
bool holds_up(const RunResult& run, const Divergence& divergence) {
  const bool calls_missing = divergence.repair == Repair::add_calls ||
                             divergence.repair == Repair::keep_rank ||
                             divergence.repair == Repair::same_group;
  return calls_missing || never_completed(*run.journal, divergence.caller, divergence.odd.ticket) ||
         std::any_of(
             divergence.parties.begin(), divergence.parties.end(), [&run](const Party& party) {
               return party.call &&
                      never_completed(*run.journal, party.ranks.first(), party.call->ticket);
             });
}

RankSet ranks_in(const Finding& finding) {
  RankSet ranks = finding.ranks;
  for (const RankAction& action : finding.did) {
    ranks.add(action.ranks);
  }
  return ranks;
}

// Findings of an invariant, except those that another finding already explains.
std::vector<Finding> unexplained(std::vector<Finding> found, const RankSet& explained) {
  std::erase_if(found, [&explained](const Finding& finding) {
    return ranks_in(finding).intersects(explained);
  });
  return found;
}

// Whether a hang is reported as the end of one of these ranks.
bool names_end_of(const Finding& hang, const RankSet& ranks) {
  return hang.code == "LS101" &&
         (hang.ranks.intersects(ranks) ||
          std::any_of(hang.did.begin(), hang.did.end(), [&ranks](const RankAction& action) {
            return action.call == 0 && action.ranks.intersects(ranks);
          }));
}

// If others wait for a rank out of memory, their hang reports it and what was held.
void add_memory(const RunResult& run, std::vector<Finding>& hanging, std::vector<Finding>& others) {
  for (Finding& memory : memory_fits(run)) {
    const auto hang = std::find_if(hanging.begin(), hanging.end(), [&memory](const Finding& known) {
      return names_end_of(known, memory.ranks);
    });
    if (hang == hanging.end()) {
      others.push_back(std::move(memory));
      continue;
    }
    std::ranges::move(memory.why.ways, std::back_inserter(hang->why.ways));
    std::ranges::move(memory.fix, std::back_inserter(hang->fix));
  }
}

void tell_consequences(const RunResult& run, const DiagnosisOptions& options, Time timeout,
                       std::vector<Finding>& findings) {
  const std::vector<std::string> waits = waiting_text(run, waits_told_max);
  for (Finding& finding : findings) {
    finding.follows.insert(finding.follows.end(), waits.begin(), waits.end());
    if (finding.code == "LS104" && options.backend == Backend::gloo) {  // seen with torch 2.11
      finding.follows.push_back(
          "where sizes differ, Gloo ends a process that gets more than it asked for (SIGABRT), and "
          "less goes unnoticed");
    }
    const bool is_ended =
        !options.after_failure.empty() && ranks_in(finding).intersects(options.failed);
    finding.follows.push_back(is_ended ? options.after_failure
                                       : visible_text(run, options, timeout));
  }
}

}  // namespace

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::nccl: return "NCCL";
    case Backend::gloo: return "Gloo";
    case Backend::mpi: return "MPI";
  }
  return "?";
}

Time default_timeout(Backend backend) {
  switch (backend) {
    case Backend::nccl: return 10_min;
    case Backend::gloo: return 30_min;
    case Backend::mpi: return Time::max();
  }
  return Time::max();
}

std::vector<Finding> diagnose(const RunResult& run, const DiagnosisOptions& options) {
  if (run.journal == nullptr) {
    return {};
  }
  const Time timeout =
      options.timeout == Time() ? default_timeout(options.backend) : options.timeout;
  std::vector<Finding> hanging;
  std::vector<Finding> others;
  RankSet explained;
  for (const Divergence& divergence : divergences_of(run)) {
    const bool holds = run.hung && holds_up(run, divergence);
    (holds ? hanging : others).push_back(finding_of(run, divergence));
    if (holds) {
      explained.add(divergence.members);
    }
  }
  // Parts that do not fit together never complete: their ranks wait for no other reason.
  for (Finding& misfit : unexplained(matched_parts(run), explained)) {
    explained.add(misfit.ranks);
    (run.hung ? hanging : others).push_back(std::move(misfit));
  }
  std::ranges::move(unexplained(no_deadlock(run), explained), std::back_inserter(hanging));
  if (run.hung) {
    tell_consequences(run, options, timeout, hanging);
  }
  add_memory(run, hanging, others);
  std::ranges::move(no_buffering_hazard(run), std::back_inserter(others));
  std::ranges::move(no_race(run), std::back_inserter(others));
  std::ranges::move(no_slow_participant(run, timeout), std::back_inserter(others));
  std::ranges::move(others, std::back_inserter(hanging));
  for (Finding& finding : hanging) {
    if (!options.world.empty()) {
      finding.when = options.world + (finding.when.empty() ? "" : ", " + finding.when);
    }
  }
  sort_findings(hanging);
  return hanging;
}

}  // namespace lockstep
