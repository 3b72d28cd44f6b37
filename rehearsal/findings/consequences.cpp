#include "rehearsal/findings/consequences.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "properties/logged/metric_is_global.hpp"
#include "rehearsal/findings/monitored.hpp"

namespace lockstep::cli {

namespace {

bool scales_rates(const MonitoredDecision& decision) {
  return decision.name != "EarlyStopping" && decision.name != "ModelCheckpoint";
}

bool decides_apart(const MonitoredDecision& decision) {
  const std::vector<Finding> found = decisions_agree({&decision, 1});
  return std::ranges::any_of(found, [](const Finding& one) { return one.level == Level::error; });
}

void tell_in(const Finding& consequence, const std::string& decides, Finding& cause) {
  cause.level = Level::error;
  cause.also.push_back(consequence.code);
  const auto tells_decision = [&decides](const std::string& line) {
    return line.starts_with(decides + " monitors");
  };
  const bool is_told = std::ranges::any_of(cause.follows, tells_decision);
  std::erase_if(cause.follows,
                [](const std::string& line) { return line.starts_with(callbacks_that_monitor); });
  cause.follows.push_back(consequence.title);
  std::ranges::copy_if(consequence.follows, std::back_inserter(cause.follows),
                       [&](const std::string& line) { return !is_told || !tells_decision(line); });
}

}  // namespace

void fold_consequences(const OneRun& run, std::vector<Finding>& findings) {
  const auto replicas = std::ranges::find(findings, std::string("LS305"), &Finding::code);
  if (replicas == findings.end()) {
    return;
  }
  for (const MonitoredDecision& decision : monitored_decisions(run)) {
    const auto local = std::ranges::find_if(findings, [&decision](const Finding& finding) {
      return finding.code == "LS302" && finding.site() == decision.logged_at;
    });
    if (local != findings.end() && decision.logged_at != no_site && scales_rates(decision) &&
        decides_apart(decision)) {
      tell_in(*replicas, decision.name, *local);
      findings.erase(replicas);
      sort_findings(findings);
      return;
    }
  }
}

}  // namespace lockstep::cli
