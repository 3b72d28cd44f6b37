#include "properties/invariants/matched_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "properties/diagnosis/batch_position.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "properties/diagnosis/remedy_of_divergence.hpp"

namespace lockstep {

namespace {

std::string operation_text(const Journal& journal, int32_t rank, const Call& call) {
  std::string text = text_of(call);
  if (call.kind == OpKind::new_group) {
    const LaneJournal& lane = journal.lane(rank, call.ticket.lane.value);
    const RowLists lists = lane.lists_of(lane.row(call.row));
    if (!lists.splits.empty()) {
      const std::vector<int32_t> members(lists.splits.begin(), lists.splits.end());
      text += " of " + RankSet(members).phrase();
    }
  }
  return text;
}

std::string end_text(const RunResult& run, int32_t rank, int64_t ranks = 1) {
  switch (end_of_rank(run, rank)) {
    case RankEnd::Kind::finished: return "ends";
    case RankEnd::Kind::raised: return raised_text(run.ends[static_cast<size_t>(rank)].message);
    case RankEnd::Kind::lost: return lost_text(run, rank, ranks);
    case RankEnd::Kind::stuck:
    case RankEnd::Kind::failed: return "waits elsewhere";
  }
  return "?";
}

SiteId site_of_end(const RunResult& run, int32_t rank) {
  if (end_of_rank(run, rank) == RankEnd::Kind::lost) {
    return last_operation(*run.journal, rank).site;
  }
  const auto at = static_cast<size_t>(rank);
  return at < run.ends.size() ? run.ends[at].site : no_site;
}

// In which batch each party makes its call, where that is not the same one: by number of the party.
std::vector<std::string> batches_of_parties(const RunResult& run, const Divergence& divergence) {
  std::vector<std::string> positions;
  for (const Party& party : divergence.parties) {
    const int32_t rank = party.ranks.first();
    const int32_t lane = party.call ? party.call->ticket.lane.value : run.journal->lanes(rank);
    positions.push_back(lane < run.journal->lanes(rank)
                            ? batch_position(run.journal->sites,
                                             Decisions(*run.journal, rank, lane), party.call->row)
                            : std::string());
  }
  const bool differ = std::ranges::any_of(positions, [&](const std::string& position) {
    return !position.empty() && position != positions.front();
  });
  return differ ? positions : std::vector<std::string>(positions.size());
}

std::vector<RankAction> actions(const RunResult& run, const Divergence& divergence) {
  std::vector<RankAction> did;
  const std::vector<std::string> batches = batches_of_parties(run, divergence);
  for (size_t index = 0; index < divergence.parties.size(); ++index) {
    const Party& party = divergence.parties[index];
    if (party.call) {
      const std::string where = batches[index].empty() ? "" : " in " + batches[index];
      did.push_back({party.ranks, divergence.call + 1,
                     operation_text(*run.journal, party.ranks.first(), *party.call) + where,
                     party.call->site});
      continue;
    }
    if (divergence.shows_at >= 0) {
      did.push_back({party.ranks, 0, "leaves it out, and goes on to the next turn",
                     divergence.decision ? divergence.decision->site : no_site});
      continue;
    }
    std::map<std::pair<std::string, SiteId>, RankSet> by_end;
    for (const int32_t rank : party.ranks.ranks()) {
      by_end[{end_text(run, rank), site_of_end(run, rank)}].add(rank);
    }
    for (const auto& [end, ranks] : by_end) {
      did.push_back({ranks, 0, end_text(run, ranks.first(), ranks.size()), end.second});
    }
  }
  return did;
}

// "`a` on rank 0, `b` on ranks 1-3".
std::string keys_text(const RunResult& run, const Divergence& d) {
  std::string text;
  for (const Party& party : d.parties) {
    const Site* const site = party.call ? run.journal->sites.find(party.call->site) : nullptr;
    if (site != nullptr) {
      text += fmt::format("{}`{}` on {}", text.empty() ? "" : ", ", site->logged_key,
                          party.ranks.phrase());
    }
  }
  return text;
}

// " of training_step number 3": a batch of the run. A statement may have the name of its hook.
std::string turn_text(const RunResult& run, const Divergence& d, std::string_view of = "") {
  const Site* const guard = d.decision ? run.journal->sites.find(d.decision->site) : nullptr;
  if (guard == nullptr || guard->hook.empty()) {
    return "";
  }
  const int64_t number = times_until(*run.journal, d.caller, d.decision_lane, *d.decision);
  return guard->hook == of ? fmt::format(" (call {} of the hook)", number)
                           : fmt::format(" of {} number {}", guard->hook, number);
}

std::string title_of(const RunResult& run, const Divergence& d) {
  const std::string callers = d.callers.phrase();
  const std::string lackers = d.lackers.phrase();
  const std::string operation(name_of(d.odd.kind));
  const bool waits = never_completed(*run.journal, d.caller, d.odd.ticket);
  const std::string begin =
      waits ? fmt::format("{} {} forever in {}", callers, verb(d.callers, "wait"), operation)
            : fmt::format("{} {} {}", callers, verb(d.callers, "call"), operation);
  switch (d.repair) {
    case Repair::keep_rank:
      return fmt::format("{}: {} {}", begin, lackers,
                         end_text(run, d.lackers.first(), d.lackers.size()));
    case Repair::add_calls:
      if (const std::string batches = batches_of(run.journal->sites, d.decision);
          !batches.empty()) {
        return fmt::format("{} {} a {} batch that {} {} not have{}", callers,
                           verb(d.callers, "run"), batches, lackers,
                           d.lackers.size() == 1 ? "does" : "do",
                           waits ? ", and " + begin.substr(callers.size() + 1) : "");
      }
      if (const Site* const statement = run.journal->sites.find(d.statement)) {
        return fmt::format("{} {} {}{} that {} {} not: its {} waits for all ranks", callers,
                           verb(d.callers, "run"), statement->description,
                           turn_text(run, d, statement->description), lackers,
                           d.lackers.size() == 1 ? "does" : "do", operation);
      }
      if (d.shows_at >= 0) {
        return fmt::format("{} {} out {}{} that {} {}", lackers, verb(d.lackers, "leave"),
                           operation, turn_text(run, d), callers, verb(d.callers, "make"));
      }
      if (d.code == "LS102") {
        return fmt::format("{} is called {} by {} and {} by {}", operation,
                           times_text(d.calls_of_caller), callers, times_text(d.calls_of_lacker),
                           lackers);
      }
      return fmt::format("{}: {} never {} it{}", begin, lackers, verb(d.lackers, "call"),
                         d.code == "LS109" ? " because it took the other branch" : "");
    case Repair::exchange_calls:
      if (d.code == "LS303") {
        return "values of different keys are reduced into one: " + keys_text(run, d);
      }
      return fmt::format("{} and {} do not call {} in the same order", callers, lackers, operation);
    case Repair::change_arguments:
      return fmt::format("{} {} {} with different arguments from {}", callers,
                         verb(d.callers, "call"), operation, lackers);
    case Repair::same_group:
      return fmt::format("{} and {} do not make the same group", callers, lackers);
  }
  return operation;
}

// "ranks 0, 1", "parts 2, 3, 3": the list of a call.
std::string list_text(const Journal& journal, int32_t rank, const Call& call) {
  const LaneJournal& lane = journal.lane(rank, call.ticket.lane.value);
  const RowLists lists = lane.lists_of(lane.row(call.row));
  if (lists.splits.empty()) {
    return call.splits == 0 ? "none" : "a different list";
  }
  const bool members = call.kind == OpKind::new_group;
  if (members && lists.splits.size() > 8) {
    const std::vector<int32_t> ranks(lists.splits.begin(), lists.splits.end());
    return RankSet(ranks).phrase();
  }
  return fmt::format("{} {}", members ? "ranks" : "parts", fmt::join(lists.splits, ", "));
}

// The first argument in which the parties differ, with everybody's value.
Why differing_argument(const Journal& journal, const Divergence& d) {
  using Print = std::function<std::string(int32_t, const Call&)>;
  struct Argument {
    const char* name;
    Print print;
  };
  const Argument arguments[] = {
      {"dtypes", [](int32_t, const Call& call) { return std::string(name_of(call.dtype)); }},
      {"roots", [](int32_t, const Call& call) { return fmt::format("rank {}", call.root); }},
      {"reductions",
       [](int32_t, const Call& call) { return std::string(name_of(call.reduction)); }},
      {"sizes", [](int32_t, const Call& call) { return fmt::format("{} bytes", call.bytes); }},
      {d.odd.kind == OpKind::new_group ? "members" : "parts",
       [&journal](int32_t rank, const Call& call) { return list_text(journal, rank, call); }}};
  for (const Argument& argument : arguments) {
    Why why{fmt::format("the {} differ", argument.name), no_site, {}};
    std::map<std::string, RankSet> by_value;
    for (const Party& party : d.parties) {
      if (party.call) {
        by_value[argument.print(party.ranks.first(), *party.call)].add(party.ranks);
      }
    }
    if (by_value.size() > 1) {
      for (const auto& [value, ranks] : by_value) {
        why.ways.push_back({ranks, value});
      }
      return why;
    }
  }
  return {};
}

std::string ways_text(const std::vector<Way>& ways) {
  std::string text;
  for (const Way& way : ways) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", way.value, way.ranks.phrase());
  }
  return text;
}

// "8 times on rank 0" as "8 on rank 0".
std::string numbers_text(const std::vector<Way>& ways) {
  std::string text;
  for (const Way& way : ways) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ",
                        way.value.substr(0, way.value.find(' ')), way.ranks.phrase());
  }
  return text;
}

Why why_of(const RunResult& run, const Divergence& d) {
  if (d.repair == Repair::keep_rank) {
    const int32_t rank = d.lackers.first();
    const SiteId site = site_of_end(run, rank);
    return {fmt::format("{} {}{}", d.lackers.phrase(), end_text(run, rank, d.lackers.size()),
                        site == no_site ? "" : " at " + run.journal->sites.place(site)),
            site,
            {}};
  }
  if (d.decision) {
    const Site* site = run.journal->sites.find(d.decision->site);
    if (site != nullptr && !site->batches.empty()) {
      return {fmt::format("the number of {} batches: {}", site->batches, numbers_text(d.ways)),
              d.decision->site, d.ways};
    }
    const std::string condition =
        site == nullptr || site->condition.empty() ? "a condition" : "`" + site->condition + "`";
    return {fmt::format(
                "{} {} {}{}", condition, d.decision->kind == ChoiceKind::repeat ? "repeats" : "is",
                ways_text(d.ways), d.code == "LS109" ? ": each rank decided by its own data" : ""),
            d.decision->site, d.ways};
  }
  if (d.repair == Repair::change_arguments || d.repair == Repair::same_group) {
    return differing_argument(*run.journal, d);
  }
  return {};
}

std::string when_of(const RunResult& run, const Divergence& d) {
  const Site* site = run.journal->sites.find(d.odd.site);
  std::string when = site == nullptr || site->hook.empty() ? "" : "in " + site->hook + ", ";
  const Completion completion =
      run.journal->lane(d.caller, d.odd.ticket.lane.value).completion(d.odd.ticket.sequence);
  if (completion.issue > Time() && !run.times_measured) {
    when += fmt::format("at {}, ", time_text(completion.issue.count()));
  }
  return when + (d.call == 0   ? fmt::format("the first call of group {}", d.group)
                 : d.call == 1 ? fmt::format("call 1 of group {} agrees", d.group)
                               : fmt::format("calls 1-{} of group {} agree", d.call, d.group));
}

void add_sites(const RunResult& run, Finding& finding, const Divergence& d) {
  const std::string label = fmt::format("call {} of group {}", d.call + 1, d.group);
  finding.sites.push_back({d.odd.site, SiteRole::subject, label});
  if (d.decision) {
    const Site* const site = run.journal->sites.find(d.decision->site);
    const bool counts = site != nullptr && !site->batches.empty();
    finding.sites.push_back(
        {d.decision->site, SiteRole::guard, counts ? numbers_text(d.ways) : ways_text(d.ways)});
  }
  for (const RankAction& action : finding.did) {
    const bool known = action.site == d.odd.site || action.site == no_site;
    if (!known && finding.sites.size() < 4) {
      finding.sites.push_back({action.site,
                               action.call == 0 ? SiteRole::exception : SiteRole::other,
                               fmt::format("{} on {}", action.call == 0 ? action.operation : label,
                                           action.ranks.phrase())});
    }
  }
}

// "all_gather with barrier", or empty where all parties call one kind.
std::string kinds_text(const Divergence& d) {
  std::vector<std::string_view> kinds;
  for (const Party& party : d.parties) {
    if (party.call && std::ranges::find(kinds, name_of(party.call->kind)) == kinds.end()) {
      kinds.push_back(name_of(party.call->kind));
    }
  }
  return kinds.size() < 2 ? std::string() : fmt::format("{}", fmt::join(kinds, " with "));
}

std::string pairing_text(const RunResult& run, const Divergence& d) {
  if (d.repair == Repair::keep_rank || d.lackers.empty()) {
    return {};
  }
  if (d.shows_at >= 0) {
    return fmt::format(
        "calls are paired by position: from call {} on each is paired with one of the next turn, "
        "and "
        "call {} is the first that differs",
        d.call + 1, d.shows_at + 1);
  }
  const bool paired = std::any_of(d.parties.begin(), d.parties.end(), [&d](const Party& party) {
    return party.call && !d.callers.intersects(party.ranks);
  });
  const bool waits = never_completed(*run.journal, d.caller, d.odd.ticket);
  if (!paired) {
    return waits
               ? ""
               : fmt::format("call {} of group {} is left without a partner", d.call + 1, d.group);
  }
  const std::string kinds = kinds_text(d);
  return fmt::format("calls are paired by position: call {} {}", d.call + 1,
                     !waits ? "completes, but each rank receives data meant for another call"
                     : kinds.empty() ? "matches different calls with each other and never completes"
                                     : fmt::format("matches {}, so {} completes", kinds,
                                                   d.parties.size() > 2 ? "none" : "neither"));
}

}  // namespace

std::string verb(const RankSet& ranks, std::string_view plural) {
  return fmt::format("{}{}", plural, ranks.size() == 1 ? "s" : "");
}

bool never_completed(const Journal& journal, int32_t rank, Ticket ticket) {
  if (!journal.options().completions || ticket.lane.value >= journal.lanes(rank)) {
    return false;
  }
  return journal.lane(rank, ticket.lane.value).completion(ticket.sequence).outcome != Outcome::ok;
}

Finding finding_of(const RunResult& run, const Divergence& d) {
  Finding finding = finding_of(d.code, Level::error, title_of(run, d));
  finding.ranks = d.repair == Repair::keep_rank ? d.callers : d.lackers;
  finding.group = d.group;
  finding.call = d.call + 1;
  finding.did = actions(run, d);
  finding.when = when_of(run, d);
  finding.why = why_of(run, d);
  add_sites(run, finding, d);
  if (std::string text = pairing_text(run, d); !text.empty()) {
    finding.follows.push_back(std::move(text));
  }
  if (!d.twins.empty()) {
    finding.follows.push_back(fmt::format("the same in {} more {}, the first: {}", d.twins.size(),
                                          d.twins.size() == 1 ? "group" : "groups",
                                          d.twins.front()));
  }
  for (const auto& [group, call] : d.echoes) {
    finding.follows.push_back(
        fmt::format("the calls of group {} differ too, from call {} on", group, call + 1));
  }
  const bool by_signal = std::ranges::any_of(finding.did, [&run](const auto& action) {
    const Site* site = run.journal->sites.find(action.site);
    return site != nullptr && site->answers_signal;
  });
  if (d.repair == Repair::keep_rank && !by_signal) {
    finding.fix = {"fix what ended the rank; make sure that an error on one rank stops all ranks"};
  } else {
    finding.fix = remedy_of_divergence(run, d, by_signal);
  }
  return finding;
}

std::vector<Finding> matched_collectives(const RunResult& run) {
  std::vector<Finding> findings;
  for (const Divergence& divergence : divergences_of(run)) {
    findings.push_back(finding_of(run, divergence));
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
