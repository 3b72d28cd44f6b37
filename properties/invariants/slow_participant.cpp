#include "properties/invariants/slow_participant.hpp"

#include <fmt/core.h>

#include <map>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

/// When the first and the last member called.
struct Arrival {
  Time first = Time::max();
  Time last{};
  int32_t last_rank = 0;
  int64_t members = 0;
  Call call;

  Time wait() const { return last - first; }
};

// Each call as the last of its members made it.
void name_calls(const Journal& journal, const Communicator& communicator,
                std::vector<Arrival>& arrivals) {
  size_t named = 0;
  for (auto member = communicator.calls.rbegin(); member != communicator.calls.rend(); ++member) {
    if (static_cast<size_t>(member->count) <= named) {
      continue;
    }
    const std::vector<Call> calls = calls_of(journal, member->rank, communicator.key);
    for (; named < calls.size(); ++named) {
      arrivals[named].call = calls[named];
    }
  }
}

std::vector<Arrival> arrivals_of(const Journal& journal, const Communicator& communicator) {
  std::vector<Arrival> arrivals;
  for (const MemberCalls& member : communicator.calls) {
    if (journal.own_rank(member.rank) != member.rank) {
      for (int64_t k = 0; k < member.count; ++k) {
        ++arrivals.at(static_cast<size_t>(k)).members;  // it came with the first of its class
      }
      continue;
    }
    const std::vector<Call> calls = calls_of(journal, member.rank, communicator.key);
    if (arrivals.size() < calls.size()) {
      arrivals.resize(calls.size());
    }
    for (size_t k = 0; k < calls.size(); ++k) {
      const Time issue = journal.lane(member.rank, calls[k].ticket.lane.value)
                             .completion(calls[k].ticket.sequence)
                             .issue;
      Arrival& arrival = arrivals[k];
      arrival.first = std::min(arrival.first, issue);
      if (arrival.members++ == 0 || issue > arrival.last) {
        arrival.last = issue;
        arrival.last_rank = member.rank;
      }
    }
  }
  name_calls(journal, communicator, arrivals);
  return arrivals;
}

Finding finding_of(const std::string& group, int64_t number, const Arrival& arrival, Time timeout,
                   bool measured) {
  const std::string wait =
      measured ? "too late" : time_text(arrival.wait().count()) + " after the others";
  Finding finding = lockstep::finding_of(
      "LS402", Level::error,
      fmt::format("rank {} reaches {} {}: the timeout is {}", arrival.last_rank,
                  name_of(arrival.call.kind), wait, time_text(timeout.count())));
  finding.ranks = RankSet{arrival.last_rank};
  finding.group = group;
  finding.call = number;
  finding.sites.push_back(
      {arrival.call.site, SiteRole::subject, fmt::format("call {} of group {}", number, group)});
  finding.did.push_back(
      {RankSet{arrival.last_rank}, number, text_of(arrival.call), arrival.call.site});
  finding.when = measured ? "" : fmt::format("at {}", time_text(arrival.first.count()));
  finding.follows.push_back(
      fmt::format("the timeout ends the other ranks after {}", time_text(timeout.count())));
  finding.fix = remedy_for("LS402");
  return finding;
}

}  // namespace

std::vector<Finding> no_slow_participant(const RunResult& run, const TimeLimits& limits) {
  std::vector<Finding> findings;
  Time shortest = std::min(limits.world, limits.of_new_groups);
  for (const auto& [site, limit] : limits.given) {
    shortest = std::min(shortest, limit);
  }
  if (run.journal == nullptr || run.hung || !run.journal->options().completions ||
      run.total_time <= shortest) {
    return findings;
  }
  for (const Communicator& communicator : communicators(*run.journal)) {
    const Time timeout = limits.of(communicator);
    const std::vector<Arrival> arrivals = arrivals_of(*run.journal, communicator);
    std::map<SiteId, size_t> worst;
    for (size_t k = 0; k < arrivals.size(); ++k) {
      if (arrivals[k].members == communicator.members.size() && arrivals[k].wait() > timeout) {
        const auto [at, fresh] = worst.try_emplace(arrivals[k].call.site, k);
        at->second = arrivals[k].wait() > arrivals[at->second].wait() ? k : at->second;
      }
    }
    for (const auto& [site, k] : worst) {
      const CallNumbers numbers(*run.journal, arrivals[k].last_rank, communicator.key);
      findings.push_back(finding_of(communicator.label, numbers.of(static_cast<int64_t>(k)),
                                    arrivals[k], timeout, run.times_measured));
    }
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
