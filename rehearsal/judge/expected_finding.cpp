#include "rehearsal/judge/expected_finding.hpp"

#include <algorithm>
#include <string_view>

#include "model/strategy/known_exceptions.hpp"

namespace lockstep::cli {

namespace {

/// "scenario.yaml:17" names line 17 of "scenarios/scenario.yaml" too.
bool is_line_of(std::string_view text, const Site& site) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || site.line == 0 ||
      text.substr(colon + 1) != std::to_string(site.line)) {
    return false;
  }
  const std::string_view file = text.substr(0, colon);
  const std::string_view whole = site.file;
  return whole == file || (whole.ends_with(file) && whole.size() > file.size() &&
                           whole[whole.size() - file.size() - 1] == '/');
}

bool is_at(const ExpectedPlace& place, const Site& site) {
  if (!place.lines.empty()) {
    return std::ranges::any_of(place.lines, [&](const ExpectedPlace::Lines& lines) {
      return lines.file == site.file && site.line >= lines.first && site.line <= lines.last;
    });
  }
  return site.at == place.text || is_line_of(place.text, site);
}

bool is_at(const ExpectedPlace& place, const Finding& finding, const Sites& sites) {
  const auto matches = [&](SiteId id) {
    const Site* site = sites.find(id);
    return site != nullptr && is_at(place, *site);
  };
  return matches(finding.why.site) ||
         std::ranges::any_of(finding.sites,
                             [&](const FindingSite& named) { return matches(named.site); });
}

// The ranks of the title, or those of one line about what ranks did.
bool is_on(const std::vector<int64_t>& ranks, const Finding& finding) {
  const std::vector<int32_t> asked(ranks.begin(), ranks.end());
  const RankSet set(asked);
  return finding.ranks == set || std::ranges::any_of(finding.did, [&](const RankAction& action) {
           return action.ranks == set;
         });
}

bool has_level(ExpectedLevel asked, Level level) {
  return asked == ExpectedLevel::any ||
         (asked == ExpectedLevel::warning ? level == Level::warning : level == Level::note);
}

}  // namespace

bool names_finding(const Expectation& expectation, const Finding& finding, const Sites& sites) {
  const auto asked = [&](const std::string& code) {
    return std::ranges::count(expectation.codes, code) != 0;
  };
  return (asked(finding.code) || std::ranges::any_of(finding.also, asked)) &&
         has_level(expectation.level, finding.level) &&
         (!expectation.at || is_at(*expectation.at, finding, sites)) &&
         (expectation.on_ranks.empty() || is_on(expectation.on_ranks, finding));
}

bool tells_a_raise(const Finding& finding) {
  return (finding.code.empty() || finding.code == wrapping_code) &&
         finding.topic != FindingTopic::not_modelled &&
         std::ranges::any_of(finding.sites, [](const FindingSite& site) {
           return site.role == SiteRole::exception;
         });
}

bool tells_an_assertion(const Finding& finding) { return finding.topic == FindingTopic::assertion; }

bool is_expected(const Rehearsal& rehearsal, const Finding& finding) {
  const auto expects = [&](const Expectation& expectation) {
    switch (expectation.kind) {
      case ExpectationKind::finding: return names_finding(expectation, finding, rehearsal.sites);
      case ExpectationKind::hang: return finding.code.starts_with("LS1");
      case ExpectationKind::raises: return tells_a_raise(finding);
      case ExpectationKind::assertion: return tells_an_assertion(finding);
      case ExpectationKind::refused: return finding.code.starts_with("LS5");
      default: return false;
    }
  };
  return std::ranges::any_of(rehearsal.scenario->expectations, expects);
}

}  // namespace lockstep::cli
