// Programs as they are written with MPI or torch.distributed, each correct and with one known
// fault: the share of faults that is found, and of findings that are faults. The truth comes from
// the generator.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/property/faulty_program.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace faulty_program_test {

namespace {

constexpr int32_t programs_of_a_fault = 8;

uint32_t seed() {
  const char* const parameters = std::getenv("RC_PARAMS");
  const std::string text = parameters == nullptr ? "" : parameters;
  const size_t at = text.find("seed=");
  return at == std::string::npos ? 1
                                 : static_cast<uint32_t>(std::strtoul(&text[at + 5], nullptr, 10));
}

/// Of one kind of fault.
struct Tally {
  int64_t programs = 0;
  int64_t found = 0;     ///< of them, with a finding at the fault
  int64_t findings = 0;  ///< of faulty and correct programs
  int64_t right = 0;     ///< of them, at the fault of a faulty program
};

bool is_at(const Sites& sites, const Finding& finding, const std::vector<std::string>& places) {
  const auto names = [&](SiteId id) {
    const Site* site = sites.find(id);
    return site != nullptr && std::ranges::count(places, site->at) > 0;
  };
  return std::ranges::any_of(finding.sites,
                             [&](const FindingSite& site) { return names(site.site); }) ||
         std::ranges::any_of(finding.did,
                             [&](const RankAction& action) { return names(action.site); });
}

std::string titles(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.code + ": " + finding.title + "\n";
  }
  return text;
}

class Trial {
 public:
  void run(const GeneratedProgram& program) {
    Tally& tally = tallies_[static_cast<size_t>(program.fault)];
    const std::string name(fault_names[static_cast<size_t>(program.fault)]);
    ++tally.programs;
    const std::string correct = scenario_of(program, false);
    const std::string faulty = scenario_of(program, true);
    const Rehearsal clean = std::move(rehearsed(correct).front().result);
    tally.findings += std::ssize(clean.findings);
    if (!clean.findings.empty()) {
      fail(name + ": a finding in a correct program", correct, clean.findings);
    }
    const Rehearsal ran = std::move(rehearsed(faulty).front().result);
    const std::vector<std::string> places = places_of(program);
    const auto right = std::ranges::count_if(
        ran.findings, [&](const Finding& finding) { return is_at(ran.sites, finding, places); });
    tally.found += right > 0 ? 1 : 0;
    tally.findings += std::ssize(ran.findings);
    tally.right += right;
    if (right == 0) {
      fail(name + ": not found", faulty, ran.findings);
    } else if (right != std::ssize(ran.findings)) {
      fail(name + ": a finding elsewhere", faulty, ran.findings);
    }
  }

  void print() const {
    Tally all;
    fmt::print("\n{:<18} {:>8} {:>7} {:>9} {:>10}\n", "fault", "programs", "recall", "findings",
               "precision");
    for (size_t fault = 0; fault < tallies_.size(); ++fault) {
      const Tally& tally = tallies_[fault];
      print_row(fault_names[fault], tally);
      all.programs += tally.programs;
      all.found += tally.found;
      all.findings += tally.findings;
      all.right += tally.right;
    }
    print_row("all", all);
  }
  bool is_right() const {
    return std::ranges::all_of(tallies_, [](const Tally& tally) {
      return tally.programs > 0 && tally.found == tally.programs && tally.right == tally.findings;
    });
  }

 private:
  static double share(int64_t part, int64_t whole) {
    return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  }
  static void print_row(std::string_view name, const Tally& tally) {
    fmt::print("{:<18} {:>8} {:>7.3f} {:>9} {:>10.3f}\n", name, tally.programs,
               share(tally.found, tally.programs), tally.findings,
               share(tally.right, tally.findings));
  }
  void fail(const std::string& what, const std::string& text,
            const std::vector<Finding>& findings) {
    constexpr int most_told = 5;
    if (++told_ <= most_told) {
      fmt::print("{}\n{}{}\n", what, text, titles(findings));
    }
  }

  std::array<Tally, fault_count> tallies_{};
  int told_ = 0;
};

}  // namespace

TEST_CASE("every fault of a generated program is found and nothing else is") {
  Random random(seed());
  Trial trial;
  for (int32_t first = 0; first < collective_kinds; ++first) {
    for (int32_t second = 0; second < collective_kinds; ++second) {
      for (const bool asynchronous : {false, true}) {
        if (first != second) {
          const bool gloo = (first + second + (asynchronous ? 1 : 0) + seed()) % 2 == 0;
          trial.run(draw_program(random, Fault::other_collective, gloo, asynchronous,
                                 static_cast<StepKind>(first), static_cast<StepKind>(second)));
        }
      }
    }
  }
  for (int32_t fault = 1; fault < fault_count; ++fault) {
    for (int32_t number = 0; number < programs_of_a_fault; ++number) {
      trial.run(
          draw_program(random, static_cast<Fault>(fault), number % 2 == 0, number / 2 % 2 == 0));
    }
  }
  trial.print();
  CHECK(trial.is_right());
}

}  // namespace faulty_program_test
