// Faults that took no effect, and why.
#include <fmt/format.h>

#include "properties/finding.hpp"
#include "rehearsal/run/faults.hpp"

namespace lockstep::cli {

namespace {

std::string instant_text(const FaultSpec& fault) {
  if (!fault.at || fault.at->value.is_start()) {
    return "";
  }
  const Instant& at = fault.at->value;
  switch (at.kind) {
    case Instant::Kind::time: return fmt::format(" from {} on", time_text(at.time.count()));
    case Instant::Kind::step: return fmt::format(" from step {} on", at.count);
    case Instant::Kind::epoch: return fmt::format(" from epoch {} on", at.count);
  }
  return "";
}

std::string reason_not_to_strike(const FaultSpec& fault) {
  switch (fault.kind) {
    case FaultKind::straggler: return "nothing was computed" + instant_text(fault);
    case FaultKind::slow_data: return "no time was spent on loading data" + instant_text(fault);
    case FaultKind::slow_link: return "no transfer used the link" + instant_text(fault);
    case FaultKind::lost_message:
      return fmt::format("fewer than {} of its calls send a message{}",
                         value_or(fault.call, int64_t{1}), instant_text(fault));
    case FaultKind::corrupted_value:
      return fmt::format("fewer than {} of its calls send data{}", value_or(fault.call, int64_t{1}),
                         instant_text(fault));
    case FaultKind::exception:
    case FaultKind::out_of_memory:
      return fmt::format("`{}` did not begin{}", value_or(fault.hook, std::string("training_step")),
                         instant_text(fault));
    case FaultKind::lost_rank:
      if (fault.call) {
        return fmt::format("it has fewer than {} operations{}", fault.call->value,
                           instant_text(fault));
      }
      return "the program had ended before";
    case FaultKind::lost_node: return "the program had ended before";
    case FaultKind::signal:
      if (fault.hook) {
        return fmt::format("`{}` did not begin{}", fault.hook->value, instant_text(fault));
      }
      return "the program had ended before";
  }
  return "";
}

// A server has no trainer: no hook of it begins, and its steps are its updates.
std::string text_of_servers(const FaultSpec& fault, const std::vector<int32_t>& ranks,
                            const RankSet& servers) {
  RankSet missed;
  for (const int32_t rank : ranks) {
    if (servers.contains(rank)) {
      missed.add(rank);
    }
  }
  if (missed.empty()) {
    return "";
  }
  const bool needs_trainer = fault.kind == FaultKind::exception || fault.hook ||
                             fault.kind == FaultKind::out_of_memory ||
                             fault.kind == FaultKind::slow_data;
  const char* const is = missed.size() == 1 ? "is a parameter server" : "are parameter servers";
  if (needs_trainer) {
    return fmt::format("; {} {}, which runs no hook and loads no data (use lost_rank)",
                       missed.phrase(), is);
  }
  return fault.at && fault.at->value.kind != Instant::Kind::time
             ? fmt::format("; {} {}, whose steps are its updates and which has no epochs",
                           missed.phrase(), is)
             : "";
}

}  // namespace

std::vector<Problem> notes_on_unstruck(const Scenario& scenario, const FaultPlan& plan,
                                       const RunResult& result, const RankSet& servers) {
  std::set<std::pair<int32_t, int32_t>> struck = result.struck_faults;
  for (const LostRank& lost : plan.lost_ranks) {
    if (result.ends[static_cast<size_t>(lost.rank)].kind == RankEnd::Kind::lost) {
      struck.emplace(lost.number, lost.rank);
    }
  }
  // The process of a lost rank may be gone with what it knew.
  for (const auto& [number, rank] : plan.expected) {
    const FaultKind kind = scenario.faults[static_cast<size_t>(number)].kind;
    const bool takes_away =
        kind == FaultKind::lost_rank || kind == FaultKind::lost_node || kind == FaultKind::signal;
    if (takes_away && result.ends[static_cast<size_t>(rank)].kind == RankEnd::Kind::lost) {
      struck.emplace(number, rank);
    }
  }
  std::map<int32_t, std::vector<int32_t>> missed;
  for (const auto& [number, rank] : plan.expected) {
    if (struck.count({number, rank}) == 0) {
      missed[number].push_back(rank);
    }
  }
  std::vector<Problem> notes;
  for (const auto& [number, ranks] : missed) {
    const FaultSpec& fault = scenario.faults[static_cast<size_t>(number)];
    const std::string whom = ranks.front() < 0 ? std::string() : " on " + RankSet(ranks).phrase();
    notes.push_back(
        {Problem::Kind::note, fault.place,
         fmt::format("fault {}, `{}`, never took effect{}: {}{}", number + 1, name_of(fault.kind),
                     whom, reason_not_to_strike(fault), text_of_servers(fault, ranks, servers)),
         ""});
  }
  return notes;
}

}  // namespace lockstep::cli
