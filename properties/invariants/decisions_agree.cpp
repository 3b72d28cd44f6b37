#include "properties/invariants/decisions_agree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "properties/logged/rounding.hpp"
#include "properties/logged/value_text.hpp"

namespace lockstep {

namespace {

/// By value, the ranks that have it; the value of the first rank first.
std::vector<Way> ways_by(const MonitoredDecision& decision, const auto& text_of) {
  std::vector<Way> ways;
  for (const RankDecisions& rank : decision.ranks) {
    const std::string text = text_of(rank);
    auto known =
        std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.value == text; });
    if (known == ways.end()) {
      ways.push_back({{}, text});
      known = ways.end() - 1;
    }
    known->ranks.add(rank.rank);
  }
  return ways;
}

std::string listed(const std::vector<Way>& ways) {
  constexpr size_t most_listed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(ways.size(), most_listed); ++i) {
    text += fmt::format("{}{} on {}", i == 0 ? "" : ", ", ways[i].value, ways[i].ranks.phrase());
  }
  return text + (ways.size() > most_listed ? ", .." : "");
}

size_t turns_of(const MonitoredDecision& decision) {
  size_t most = 0;
  for (const RankDecisions& rank : decision.ranks) {
    most = std::max(most, rank.turns.size());
  }
  return most;
}

const DecisionTurn* turn_of(const RankDecisions& rank, size_t turn) {
  return turn < rank.turns.size() ? &rank.turns[turn] : nullptr;
}

/// The first turn at which ranks differ in `member`, or at which some have none.
std::optional<size_t> first_difference(const MonitoredDecision& decision,
                                       bool DecisionTurn::*member) {
  for (size_t turn = 0; turn < turns_of(decision); ++turn) {
    const DecisionTurn* const first = turn_of(decision.ranks.front(), turn);
    for (const RankDecisions& rank : decision.ranks) {
      const DecisionTurn* const own = turn_of(rank, turn);
      if ((own == nullptr) != (first == nullptr) ||
          (own != nullptr && own->*member != first->*member)) {
        return turn;
      }
    }
  }
  return std::nullopt;
}

/// Of the turn, or where no turn differs of the first whose values do.
size_t telling_turn(const MonitoredDecision& decision, std::optional<size_t> turn) {
  for (size_t at = 0; !turn && at < turns_of(decision); ++at) {
    const DecisionTurn* const first = turn_of(decision.ranks.front(), at);
    for (const RankDecisions& rank : decision.ranks) {
      const DecisionTurn* const own = turn_of(rank, at);
      turn = own != nullptr && first != nullptr && own->value != first->value ? at : turn;
    }
  }
  return turn.value_or(0);
}

void tell_why(const MonitoredDecision& decision, size_t turn, bool DecisionTurn::*member,
              Finding& finding) {
  finding.why.site = decision.logged_at;
  finding.why.ways = ways_by(decision, [&](const RankDecisions& rank) -> std::string {
    const DecisionTurn* const own = turn_of(rank, turn);
    return own == nullptr ? "decides nothing"
                          : fmt::format("{} = {}: {}", decision.monitor, value_text(own->value),
                                        own->*member ? decision.deed : "does not");
  });
  for (const RankDecisions& rank : decision.ranks) {
    if (const DecisionTurn* const own = turn_of(rank, turn)) {
      finding.when = fmt::format("epoch {}", own->epoch);
      break;
    }
  }
  finding.why.text = "each rank compares its own value";
}

// Some ranks decide nothing, and the others all see one value: no value has to be fixed.
bool is_skipped(const MonitoredDecision& decision, size_t turn) {
  std::optional<double> seen;
  bool skipped = false;
  for (const RankDecisions& rank : decision.ranks) {
    const DecisionTurn* const own = turn_of(rank, turn);
    if (own != nullptr && seen && beyond_rounding(*seen, own->value, 0)) {
      return false;
    }
    skipped = skipped || own == nullptr;
    seen = own != nullptr ? own->value : seen;
  }
  return skipped;
}

void tell_skipped(const MonitoredDecision& decision, Finding& finding) {
  finding.why.text = "some ranks do not step it at all";
  finding.fix = {
      fmt::format("let every rank step {}: it is under a condition that holds on some ranks only",
                  decision.name)};
}

Finding finding_for(const MonitoredDecision& decision, Level level, std::string title) {
  Finding finding = finding_of("LS109", level, std::move(title));
  for (const RankDecisions& rank : decision.ranks) {
    finding.ranks.add(rank.rank);
  }
  finding.sites.push_back(
      {decision.site, SiteRole::subject, fmt::format("monitors `{}`", decision.monitor)});
  if (decision.logged_at != no_site) {
    finding.sites.push_back(
        {decision.logged_at, SiteRole::other, fmt::format("logs `{}`", decision.monitor)});
  }
  finding.fix = {
      fmt::format("log `{}` with sync_dist: true, or log a metric object: then every "
                  "rank sees the same value",
                  decision.monitor)};
  return finding;
}

std::optional<Finding> judged(const MonitoredDecision& decision) {
  const std::vector<Way> results =
      ways_by(decision, [](const RankDecisions& rank) { return rank.result; });
  const std::optional<size_t> deed = first_difference(decision, &DecisionTurn::done);
  if (results.size() > 1 || deed) {
    const std::string title =
        results.size() > 1 ? fmt::format("{} differs by rank: {}", decision.result, listed(results))
                           : fmt::format("{} acts differently by rank", decision.name);
    Finding finding = finding_for(decision, Level::error, title);
    const size_t turn = telling_turn(decision, deed);
    tell_why(decision, turn, &DecisionTurn::done, finding);
    if (is_skipped(decision, turn)) {
      tell_skipped(decision, finding);
    }
    return finding;
  }
  const std::optional<size_t> wish = first_difference(decision, &DecisionTurn::own);
  if (!wish) {
    return std::nullopt;
  }
  Finding finding =
      finding_for(decision, Level::warning,
                  fmt::format("ranks disagree whether {} {}", decision.name, decision.deed));
  finding.topic = FindingTopic::disagreement;
  tell_why(decision, *wish, &DecisionTurn::own, finding);
  const bool done = turn_of(decision.ranks.front(), *wish)->done;
  finding.follows.push_back(done ? "it does so on all ranks, because some ranks decide so"
                                 : "it does so on no rank, because some ranks decide against it");
  return finding;
}

}  // namespace

std::vector<Finding> decisions_agree(std::span<const MonitoredDecision> decisions) {
  std::vector<Finding> findings;
  for (const MonitoredDecision& decision : decisions) {
    if (!decision.ranks.empty()) {
      if (std::optional<Finding> finding = judged(decision)) {
        findings.push_back(std::move(*finding));
      }
    }
  }
  return findings;
}

}  // namespace lockstep
