#include "properties/diagnosis/diagnosis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "properties/diagnosis/gloo_outcome.hpp"
#include "properties/diagnosis/time_limits.hpp"
#include "properties/diagnosis/waiting_text.hpp"
#include "properties/invariants/kernel_order.hpp"
#include "properties/invariants/matched_collectives.hpp"
#include "properties/invariants/matched_parts.hpp"
#include "properties/invariants/memory_fits.hpp"
#include "properties/invariants/no_deadlock.hpp"
#include "properties/invariants/no_race.hpp"
#include "properties/invariants/slow_participant.hpp"

namespace lockstep {

namespace {

constexpr size_t waits_told_max = 4;

// Ranks whose processes are gone, or go as soon as nothing else keeps them.
RankSet ended_ranks(const RunResult& run) {
  RankSet ended;
  for (int32_t rank = 0; rank < run.journal->ranks(); ++rank) {
    const RankEnd::Kind end = end_of_rank(run, rank);
    if (end == RankEnd::Kind::finished || end == RankEnd::Kind::raised ||
        end == RankEnd::Kind::lost) {
      ended.add(rank);
    }
  }
  return ended;
}

// Recorded with torch 2.11 over Gloo: a process that ends closes its connections, and whoever waits
// for it raises within 10 ms. Otherwise all wait for the time limit, and the group is of no use any
// more ("Application timeout caused pair closure"). These are processes on CPUs.
std::string visible_over_gloo(const RankSet& ended, int64_t ranks, Time timeout) {
  if (!ended.empty()) {
    return fmt::format(
        "no wait of {}: as soon as the {} of {} {}, whoever waits for it raises 'Connection closed "
        "by peer'",
        time_text(timeout.count()), ended.size() == 1 ? "process" : "processes", ended.phrase(),
        ended.size() == 1 ? "ends" : "end");
  }
  const std::string limit = time_text(timeout.count());
  return fmt::format(
      "the waiting ranks raise a timeout error after {} ({} {} x {} = {:.1f} process hours); then "
      "every later call of that group fails at once",
      limit, ranks, ranks == 1 ? "process" : "processes", limit,
      seconds(timeout) / 3600 * static_cast<double>(ranks));
}

// What the user would see, and what it costs. `ended`: of those whom this hang is about.
std::string visible_text(const RunResult& run, const DiagnosisOptions& options, Time timeout,
                         const RankSet& ended) {
  const int64_t ranks = run.journal->ranks();
  if (options.negotiated) {
    return fmt::format(
        "Horovod has no time limit: all {} ranks wait until the job's own time is over", ranks);
  }
  if (options.backend == Backend::gloo) {
    return visible_over_gloo(ended, ranks, timeout);
  }
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

/// A finding of a hang, with what its ranks see instead of a wait, where they do not wait.
struct Hang {
  Finding finding;
  std::string at_once{};
};

// Ranks that run out of memory are the defect, however many groups and neighbours wait for them.
void add_memory(const RunResult& run, std::vector<Hang>& hangs, std::vector<Finding>& others) {
  std::vector<Finding> all = memory_fits(run);
  RankSet out_of_memory;
  for (const Finding& memory : all) {
    out_of_memory.add(memory.ranks);
  }
  RankSet ended_otherwise;
  for (const int32_t rank : ended_ranks(run).ranks()) {
    if (!run.ends[static_cast<size_t>(rank)].out_of_memory) {
      ended_otherwise.add(rank);
    }
  }
  const auto waits_for_memory = [&](const Hang& hang) {
    return names_end_of(hang.finding, out_of_memory) &&
           !ranks_in(hang.finding).intersects(ended_otherwise);
  };
  if (std::erase_if(hangs, waits_for_memory) > 0) {
    all.front().follows.clear();
    hangs.push_back({std::move(all.front())});
    all.erase(all.begin());
  }
  std::ranges::move(all, std::back_inserter(others));
}

// By the group of the call that waits; else that of the world.
Time limit_of_hang(const std::vector<Communicator>& all, const TimeLimits& limits,
                   const Finding& finding) {
  const auto group = std::ranges::find(all, finding.group, &Communicator::label);
  return group == all.end() ? limits.world : limits.of(*group);
}

void tell_consequences(const RunResult& run, const DiagnosisOptions& options,
                       const TimeLimits& limits, std::vector<Hang>& hangs) {
  const std::vector<Communicator> all = communicators(*run.journal);
  const std::vector<std::string> waits = waiting_text(run, waits_told_max);
  const RankSet ended = ended_ranks(run);
  for (auto& [finding, at_once] : hangs) {
    if (!at_once.empty()) {
      finding.follows.push_back(at_once);
      continue;
    }
    finding.follows.insert(finding.follows.end(), waits.begin(), waits.end());
    const RankSet concerned = ranks_in(finding);
    RankSet gone;
    for (const int32_t rank : ended.ranks()) {
      if (concerned.contains(rank)) {
        gone.add(rank);
      }
    }
    const Time limit = limit_of_hang(all, limits, finding);
    const bool is_ended = !options.after_failure.empty() && concerned.intersects(options.failed);
    finding.follows.push_back(is_ended ? options.after_failure
                                       : visible_text(run, options, limit, gone));
  }
}

TimeLimits limits_of(const DiagnosisOptions& options) {
  if (options.negotiated) {
    return {Time::max(), Time::max(), {}};
  }
  const auto or_default = [&options](Time timeout) {
    return timeout == Time() ? default_timeout(options.backend) : timeout;
  };
  return {or_default(options.timeout), or_default(options.timeout_of_new_groups),
          options.given_timeouts};
}

}  // namespace

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::nccl: return "NCCL";
    case Backend::gloo: return "Gloo";
    case Backend::mpi: return "MPI";
    case Backend::xla: return "XLA";
  }
  return "?";
}

Time default_timeout(Backend backend) {
  switch (backend) {
    case Backend::nccl: return 10_min;
    case Backend::gloo: return 30_min;
    case Backend::mpi:
    case Backend::xla: return Time::max();
  }
  return Time::max();
}

std::vector<Finding> diagnose(const RunResult& run, const DiagnosisOptions& options) {
  if (run.journal == nullptr) {
    return {};
  }
  const TimeLimits limits = limits_of(options);
  const bool over_gloo = options.backend == Backend::gloo;
  std::vector<Hang> hangs;
  std::vector<Finding> others;
  RankSet explained;
  for (const Divergence& divergence : divergences_of(run)) {
    Finding finding = finding_of(run, divergence);
    if (run.hung && holds_up(run, divergence)) {
      explained.add(divergence.members);
      const bool sizes = over_gloo && divergence.code == "LS104";
      hangs.push_back({std::move(finding), sizes ? gloo_outcome_text(divergence) : ""});
    } else {
      others.push_back(std::move(finding));
    }
  }
  // Parts that do not fit together never complete: their ranks wait for no other reason.
  for (Finding& misfit : unexplained(matched_parts(run, over_gloo), explained)) {
    explained.add(misfit.ranks);
    if (!run.hung) {
      others.push_back(std::move(misfit));
      continue;
    }
    Hang hang{std::move(misfit)};
    if (over_gloo) {
      hang.at_once = std::move(hang.finding.follows.back());
      hang.finding.follows.pop_back();
    }
    hangs.push_back(std::move(hang));
  }
  for (Finding& finding : unexplained(no_deadlock(run), explained)) {
    hangs.push_back({std::move(finding)});
  }
  add_memory(run, hangs, others);
  if (run.hung) {
    tell_consequences(run, options, limits, hangs);
  }
  std::vector<Finding> hanging;
  for (Hang& hang : hangs) {
    hanging.push_back(std::move(hang.finding));
  }
  std::ranges::move(no_buffering_hazard(run), std::back_inserter(others));
  if (options.backend == Backend::nccl) {
    std::ranges::move(no_kernel_order_hazard(run, options.nccl), std::back_inserter(others));
  }
  std::ranges::move(no_race(run), std::back_inserter(others));
  std::ranges::move(no_slow_participant(run, limits), std::back_inserter(others));
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
