#include "tests/property/agreement.hpp"

#include <fmt/format.h>

#include <iterator>

#include "properties/invariants/deterministic.hpp"

namespace lockstep::test {

namespace {

constexpr std::chrono::seconds long_deadline{5};

void add(std::vector<std::string>& failures, const std::string& what,
         const std::vector<std::string>& found) {
  for (const std::string& each : found) {
    failures.push_back(what + ": " + each);
  }
}

void compare_findings(std::vector<std::string>& failures, const std::string& what,
                      const std::vector<std::string>& simulated,
                      const std::vector<std::string>& other) {
  if (simulated != other) {
    failures.push_back(fmt::format("{}: findings [{}] and [{}]", what, fmt::join(simulated, "; "),
                                   fmt::join(other, "; ")));
  }
}

}  // namespace

std::vector<std::string> told(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    std::string text = fmt::format("{} {} ranks {} call {}", finding.code, name_of(finding.level),
                                   finding.ranks.text(), finding.call);
    for (const FindingSite& site : finding.sites) {
      text += fmt::format(" {} {:#x}", name_of(site.role), site.site.value);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Verdict judge(Worlds& worlds, const RunOptions& options, const Body& body) {
  Arms arms = worlds.run(options, body);
  if (arms.real.result.hung && !arms.simulated.result.hung) {
    // A slow machine is no hang: only one that lasts is compared with the simulator.
    arms.real = worlds.run_real(options, body, long_deadline);
    RunOptions replaying = options;
    replaying.replay = arms.real.result.journal.get();
    arms.simulated = run_simulated(replaying, body);
  }
  RunOptions replaying = options;
  replaying.replay = arms.real.result.journal.get();
  Verdict verdict;
  verdict.hung = arms.real.result.hung;
  verdict.findings = told(diagnose(arms.simulated.result));
  add(verdict.failures, "simulated and real", disagreements(arms));
  compare_findings(verdict.failures, "simulated and real", verdict.findings,
                   told(diagnose(arms.real.result)));

  const Arm again = run_simulated(replaying, body);
  add(verdict.failures, "simulated twice", disagreements(arms.simulated, again));
  for (const JournalDifference& difference : deterministic(arms.simulated.result, again.result)) {
    verdict.failures.push_back("simulated twice: " + difference.text);
  }
  for (const uint64_t seed : {1u, 2u}) {
    const Arm tied = run_simulated(replaying, body, seed);
    add(verdict.failures, "ties permuted", disagreements(arms.simulated, tied));
    compare_findings(verdict.failures, "ties permuted", verdict.findings,
                     told(diagnose(tied.result)));
  }
  return verdict;
}

double Distribution::share(const std::string& label) const {
  const auto found = counts_.find(label);
  return found == counts_.end() || cases_ == 0
             ? 0
             : static_cast<double>(found->second) / static_cast<double>(cases_);
}

void Distribution::print(const std::string& title) const {
  fmt::print("{}: {} cases, {} discarded\n", title, cases_, drawn_ - cases_);
  for (const auto& [label, count] : counts_) {
    fmt::print("  {:5.1f} %  {}\n", 100 * share(label), label);
  }
}

}  // namespace lockstep::test
