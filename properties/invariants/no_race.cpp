#include "properties/invariants/no_race.hpp"

#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>

#include "properties/diagnosis/order_digest.hpp"
#include "properties/diagnosis/rank_races.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "properties/invariants/matched_collectives.hpp"

namespace lockstep {

namespace {

// A read that is too early is reported before anything else about the same two uses.
std::string code_of(const Race& race) {
  if (race.first.writes && race.second.reads) {
    return "LS201";
  }
  return race.first.reads || race.second.releases ? "LS202" : "LS203";
}

struct Group {
  Race example;
  RankSet ranks;
  std::set<BufferId> buffers;
};

std::string title_of(const std::string& code, const Group& group) {
  const Race& race = group.example;
  const std::string ranks = group.ranks.phrase();
  if (code == "LS201") {
    return fmt::format("{}: {} reads data that {} may still be writing", ranks, race.second_text,
                       race.first_text);
  }
  if (race.second.releases) {
    return fmt::format("{}: memory is given back that {} may still be using", ranks,
                       race.first_text);
  }
  if (code == "LS202") {
    return fmt::format("{}: {} overwrites a buffer that {} may still be using", ranks,
                       race.second_text, race.first_text);
  }
  return fmt::format("{}: {} and {} write the same buffer without an order", ranks, race.first_text,
                     race.second_text);
}

std::string follows_of(const std::string& code) {
  if (code == "LS201") {
    return "the value read is the old one, the new one or a mixture, depending on timing";
  }
  if (code == "LS202") {
    return "the earlier operation may see or leave data of the later one; the result depends on "
           "timing";
  }
  return "which of the two values remains depends on timing";
}

Finding finding_of(const std::string& code, const Group& group) {
  const Race& race = group.example;
  Finding finding = lockstep::finding_of(code, Level::error, title_of(code, group));
  finding.ranks = group.ranks;
  const bool second_known = race.second.site != no_site;
  if (second_known) {
    finding.sites.push_back({race.second.site, SiteRole::subject, race.second_text});
  }
  finding.sites.push_back({race.first.site,
                           !second_known       ? SiteRole::subject
                           : race.first.writes ? SiteRole::writer
                                               : SiteRole::other,
                           race.first_text});
  finding.did = {{group.ranks, 0, race.first_text, race.first.site},
                 {group.ranks, 0, race.second_text, race.second.site}};
  finding.why.text =
      race.second.releases
          ? "the allocator knows only the stream that allocated it, which may get it again at once"
          : "no stream, `after` or wait orders the second after the first";
  finding.follows.push_back(follows_of(code));
  if (group.buffers.size() > 1) {
    finding.follows.push_back(fmt::format("the same on {} buffers", group.buffers.size()));
  }
  finding.fix = remedy_for(code);
  if (race.second.releases) {
    finding.fix = {
        "let the stream that allocated it wait for the other one before the last name goes:",
        "  - wait_stream: {stream: USER, on: ALLOCATED}    (in Python also x.record_stream(USER))"};
  }
  return finding;
}

}  // namespace

std::vector<Finding> no_race(const RunResult& run) {
  if (run.journal == nullptr || !run.journal->options().lists) {
    return {};
  }
  // Where no statement is known, the texts distinguish uses.
  using Key = std::tuple<std::string, SiteId, SiteId, std::string, std::string>;
  std::map<Key, Group> groups;
  std::map<size_t, std::vector<Race>> known;                // by order_digest()
  std::map<int32_t, const std::vector<Race>*> of_journals;  // ranks that share one have the same
  for (int32_t rank = 0; rank < run.journal->ranks(); ++rank) {
    const int32_t own = run.journal->own_rank(rank);
    if (own == rank) {
      const size_t digest = order_digest(*run.journal, rank);
      const auto found = known.find(digest);
      of_journals[rank] = found != known.end()
                              ? &found->second
                              : &known.emplace(digest, races_of(*run.journal, rank)).first->second;
    }
    for (const Race& race : *of_journals.at(own)) {
      const Key key(code_of(race), race.first.site, race.second.site, race.first_text,
                    race.second_text);
      Group& group = groups.try_emplace(key, Group{race, {}, {}}).first->second;
      group.ranks.add(rank);
      group.buffers.insert(race.second.slice.buffer);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [key, group] : groups) {
    findings.push_back(finding_of(std::get<0>(key), group));
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
