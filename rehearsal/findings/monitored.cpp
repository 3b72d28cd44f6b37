#include "rehearsal/findings/monitored.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "properties/logged/metric_is_global.hpp"
#include "properties/logged/value_text.hpp"
#include "rehearsal/text/rates_text.hpp"

namespace lockstep::cli {

namespace {

std::string deed_of(const std::string& name) {
  if (name == "EarlyStopping") {
    return "stops";
  }
  return name == "ModelCheckpoint" ? "saves" : "lowers the learning rate";
}

std::string result_name_of(const std::string& name) {
  if (name == "EarlyStopping") {
    return "the epoch that stops";
  }
  return name == "ModelCheckpoint" ? "the best checkpoint" : "the learning rate at the end";
}

std::string result_of(const MonitorLog& monitor, const RankLog& log) {
  if (monitor.name == "EarlyStopping") {
    return log.stopped_epoch ? fmt::format("{}", *log.stopped_epoch) : "none";
  }
  for (const CheckpointLog& checkpoint : log.checkpoints) {
    if (checkpoint.site == monitor.site) {
      return checkpoint.best.empty() ? "none" : checkpoint.best;
    }
  }
  return rates_text(log);
}

SiteId logged_at(const ByRank<RankLog>& ranks, const std::string& key) {
  for (const RankLog& rank : ranks) {
    for (const LoggedKey& logged : rank.logged) {
      if (logged.key == key) {
        return logged.site;
      }
    }
  }
  return no_site;
}

RankDecisions decisions_of(int32_t rank, const MonitorLog& monitor, const RankLog& log) {
  RankDecisions decisions{rank, {}, result_of(monitor, log)};
  for (const MonitorTurn& turn : monitor.turns) {
    decisions.turns.push_back({turn.epoch, turn.value, turn.own, turn.done});
  }
  return decisions;
}

bool has_ended(const OneRun& run) {
  return !run.result.hung &&
         std::all_of(run.result.ends.begin(), run.result.ends.end(),
                     [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
}

Finding* find_of(std::vector<Finding>& findings, const std::string& code, SiteId site) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.code == code && finding.level == Level::error &&
           (site == no_site || finding.site() == site);
  });
  return found == findings.end() ? nullptr : &*found;
}

void tell_in(Finding& finding, const std::string& line) {
  std::erase_if(finding.follows,
                [](const std::string& text) { return text.starts_with(callbacks_that_monitor); });
  if (std::count(finding.follows.begin(), finding.follows.end(), line) == 0) {
    finding.follows.push_back(line);
  }
}

/// Whether a different finding explains it.
bool is_told_elsewhere(const Finding& finding, const MonitoredDecision& decision,
                       std::vector<Finding>& findings) {
  const std::string line = finding.topic == FindingTopic::disagreement
                               ? finding.title
                               : fmt::format("{} monitors it: {}", decision.name, finding.title);
  Finding* const local =
      decision.logged_at == no_site ? nullptr : find_of(findings, "LS302", decision.logged_at);
  if (local != nullptr) {
    tell_in(*local, line);
  }
  Finding* const replicas = find_of(findings, "LS305", no_site);
  const bool scales = deed_of(decision.name) == "lowers the learning rate";
  if (replicas != nullptr && scales && finding.level == Level::error) {
    tell_in(*replicas,
            fmt::format("{} monitors `{}`: {}", decision.name, decision.monitor, finding.title));
    replicas->fix = finding.fix;
    return true;
  }
  return local != nullptr;
}

}  // namespace

std::vector<MonitoredDecision> monitored_decisions(const OneRun& run) {
  std::vector<MonitoredDecision> decisions;
  std::map<SiteId, size_t> place;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const MonitorLog& monitor : ranks[rank].monitors) {
      if (monitor.monitor.empty()) {
        continue;
      }
      const auto [at, fresh] = place.emplace(monitor.site, decisions.size());
      if (fresh) {
        decisions.push_back({monitor.name,
                             monitor.monitor,
                             deed_of(monitor.name),
                             result_name_of(monitor.name),
                             monitor.site,
                             logged_at(ranks, monitor.monitor),
                             {}});
      }
      // A second fit continues with what monitors, or makes it again: the turns of both are the
      // rank's.
      std::vector<RankDecisions>& known = decisions[at->second].ranks;
      RankDecisions own = decisions_of(static_cast<int32_t>(rank), monitor, ranks[rank]);
      if (known.empty() || known.back().rank != own.rank) {
        known.push_back(std::move(own));
      } else {
        std::ranges::move(own.turns, std::back_inserter(known.back().turns));
        known.back().result = own.result;
      }
    }
  }
  return decisions;
}

namespace {

// No comparison with it holds: nothing is better than it, nor it than anything.
std::optional<Finding> of_no_number(const MonitorLog& monitor) {
  const auto turn = std::ranges::find_if(
      monitor.turns, [](const MonitorTurn& one) { return !std::isfinite(one.value); });
  if (turn == monitor.turns.end()) {
    return std::nullopt;
  }
  Finding finding =
      finding_of("", Level::warning,
                 fmt::format("{} monitors `{}`, which is {} from epoch {} on", monitor.name,
                             monitor.monitor, value_text(turn->value), turn->epoch));
  finding.sites.push_back({monitor.site, SiteRole::subject, "monitors it"});
  finding.fix = {"log a finite value: look for a division by zero or an overflow"};
  return finding;
}

}  // namespace

std::vector<Finding> idle_monitors(const OneRun& run) {
  std::vector<Finding> findings;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  if (!has_ended(run) || ranks.front().epochs == 0) {
    return findings;
  }
  for (const MonitorLog& monitor : ranks.front().monitors) {
    const bool is_logged = std::any_of(ranks.begin(), ranks.end(), [&](const RankLog& log) {
      return log.metrics.count(monitor.monitor) != 0;
    });
    if (std::optional<Finding> no_number = of_no_number(monitor)) {
      findings.push_back(std::move(*no_number));
    }
    if (monitor.monitor.empty() || !monitor.turns.empty() || is_logged) {
      continue;
    }
    Finding finding =
        finding_of("", Level::warning,
                   fmt::format("{} monitors `{}`, which nothing logs, so it never decides",
                               monitor.name, monitor.monitor));
    finding.sites.push_back({monitor.site, SiteRole::subject, "monitors it"});
    finding.fix = {
        fmt::format("log `{}` with sync_dist: true, or name another key", monitor.monitor)};
    findings.push_back(std::move(finding));
  }
  return findings;
}

void tell_decisions(const OneRun& run, std::vector<Finding>& findings) {
  if (!has_ended(run)) {
    return;
  }
  for (const MonitoredDecision& decision : monitored_decisions(run)) {
    std::erase_if(findings, [&](const Finding& finding) {
      return finding.code == "LS109" && finding.site() == decision.site;
    });
    for (Finding& finding : decisions_agree({&decision, 1})) {
      if (!is_told_elsewhere(finding, decision, findings)) {
        findings.push_back(std::move(finding));
      }
    }
  }
  sort_findings(findings);
}

}  // namespace lockstep::cli
