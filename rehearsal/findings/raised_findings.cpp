#include "rehearsal/findings/raised_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/strategy/known_exceptions.hpp"
#include "properties/diagnosis/last_operation.hpp"

namespace lockstep::cli {

namespace {

bool tells_ends_of(const std::vector<Finding>& findings, const RankSet& ranks) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return std::any_of(finding.sites.begin(), finding.sites.end(),
                       [](const FindingSite& site) { return site.role == SiteRole::exception; }) ||
           std::any_of(finding.did.begin(), finding.did.end(), [&](const RankAction& action) {
             return action.operation.starts_with("raised") && action.ranks.intersects(ranks);
           });
  });
}

bool is_not_modelled(const RankLog& log, SiteId site) {
  return std::ranges::any_of(log.findings, [site](const StatementFinding& finding) {
    return finding.code == "unsupported" && finding.site == site;
  });
}

}  // namespace

std::vector<Finding> raised_findings(const OneRun& run, const std::vector<Finding>& known) {
  std::map<std::pair<SiteId, std::string>, RankSet> raised;
  const ByRank<RankLog>& logs = run.preparation.log->ranks;
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    const RankEnd& end = run.result.ends[rank];
    const bool told = std::any_of(logs[rank].findings.begin(), logs[rank].findings.end(),
                                  [&](const StatementFinding& finding) {
                                    return finding.code == "evaluation" ||
                                           finding.code == "unbound" ||
                                           (finding.code == "LS310" && finding.site == end.site);
                                  });
    if (end.kind == RankEnd::Kind::raised && !end.out_of_memory && !told &&
        !logs[rank].statement_limit_reached) {
      raised[{end.site, end.message}].add(static_cast<int32_t>(rank));
    }
  }
  std::vector<Finding> findings;
  for (const auto& [key, ranks] : raised) {
    if (tells_ends_of(known, ranks)) {
      continue;
    }
    const KnownException* const exception = known_exception(key.first);
    Finding finding =
        lockstep::finding_of(exception != nullptr ? std::string(exception->code) : "", Level::error,
                             fmt::format("{} {}", ranks.phrase(), raised_text(key.second)));
    finding.ranks = ranks;
    const bool is_lack = is_not_modelled(logs[static_cast<size_t>(ranks.first())], key.first);
    finding.topic = is_lack ? FindingTopic::not_modelled : FindingTopic::other;
    finding.sites.push_back({key.first, SiteRole::exception, fmt::format("on {}", ranks.phrase())});
    if (exception != nullptr) {
      finding.fix.emplace_back(exception->fix);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::cli
