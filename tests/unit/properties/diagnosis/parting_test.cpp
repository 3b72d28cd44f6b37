// Which branch explains a difference between calls that a strategy makes at sites of its own.
#include <catch2/catch.hpp>

#include <algorithm>

#include "properties/diagnosis/decision.hpp"
#include "properties/invariants/matched_collectives.hpp"
#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace parting_test {
using test::JournalBuilder;

namespace {

std::string fix_of(const Finding& finding) {
  std::string text;
  for (const std::string& line : finding.fix) {
    text += line + "\n";
  }
  return text;
}

bool blames(const Finding& finding, SiteId branch) {
  return std::ranges::any_of(finding.sites, [branch](const FindingSite& site) {
    return site.role == SiteRole::guard && site.site == branch;
  });
}

// The branch leads to one statement in each of its ways; rank 1 takes the first. Behind it all
// ranks decide otherwise on what has nothing to do with it.
struct Parted {
  JournalBuilder journal{2};
  SiteId branch;
  SiteId print;

  Parted(const std::string& in_then, const std::string& in_else)
      : branch(journal.site("if", 10, {}, "rank == 1")),
        print(journal.site("if", 20, {}, "is_global_zero")) {
    const SiteId then = journal.site(in_then, 11, branch);
    const SiteId otherwise = journal.site(in_else, 12, branch);
    const SiteId gather = journal.library("gather of a unit");
    const SiteId barrier = journal.library("barrier at the end");
    for (int32_t rank = 0; rank < 2; ++rank) {
      const SiteId statement = rank == 1 ? then : otherwise;
      journal.choice(rank, branch, ChoiceKind::branch, rank == 1 ? 1 : 0);
      journal.choice(rank, statement, ChoiceKind::statement, 1);
      journal.call(rank, OpKind::all_gather, gather, 8);
      journal.choice(rank, statement, ChoiceKind::statement, 0);
      journal.choice(rank, print, ChoiceKind::branch, rank == 0 ? 1 : 0);
      const Ticket last = rank == 0
                              ? journal.call(rank, OpKind::all_gather, gather, 8, Outcome::pending)
                              : journal.call(rank, OpKind::barrier, barrier, 0, Outcome::pending);
      journal.settle(rank, last);
      journal.stuck(rank, {last});
    }
  }
};

}  // namespace

TEST_CASE(
    "the last branch that leads to calls of the strategy explains them, not any last branch") {
  Parted parted("forward", "forward");
  const std::vector<Finding> findings = matched_collectives(parted.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(blames(findings[0], parted.branch));
  CHECK_FALSE(blames(findings[0], parted.print));
  CHECK(findings[0].why.text == "`rank == 1` is true on rank 1, false on rank 0");
  CHECK(fix_of(findings[0]).find("the same modules in the same order") != std::string::npos);
}

TEST_CASE("a step in one way of a branch must be taken on all ranks") {
  Parted parted("optimizer_closure", "optimizer_step");
  const std::vector<Finding> findings = matched_collectives(parted.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(blames(findings[0], parted.branch));
  CHECK(fix_of(findings[0]).find("every rank must take the step") != std::string::npos);
}

TEST_CASE("a backward under no_sync on some ranks is not taken for another module") {
  for (const bool first : {true, false}) {
    Parted parted(first ? "no_sync" : "backward", first ? "backward" : "no_sync");
    const std::vector<Finding> findings = matched_collectives(parted.journal.run());
    REQUIRE(findings.size() == 1);
    CHECK(blames(findings[0], parted.branch));
    const std::string fix = fix_of(findings[0]);
    CHECK(fix.find("inside of no_sync for the same micro-batches") != std::string::npos);
    CHECK(fix.find("value: rank == 1") != std::string::npos);
    CHECK(fix.find("module") == std::string::npos);
  }
}

TEST_CASE("statements within a statement end with it") {
  JournalBuilder journal(1);
  const SiteId outer = journal.site("optimizer_step", 5);
  const SiteId inner = journal.site("forward", 6);
  const SiteId gather = journal.library("gather of a unit");
  journal.choice(0, outer, ChoiceKind::statement, 1);  // row 0
  journal.choice(0, inner, ChoiceKind::statement, 1);
  journal.call(0, OpKind::all_gather, gather);  // row 2
  journal.choice(0, inner, ChoiceKind::statement, 0);
  journal.call(0, OpKind::all_gather, gather);         // row 4
  journal.choice(0, inner, ChoiceKind::statement, 1);  // left by an exception
  journal.choice(0, outer, ChoiceKind::statement, 0);
  journal.call(0, OpKind::all_gather, gather);  // row 7
  const Decisions decisions(journal.journal(), 0, 0);
  const auto sites_at = [&](int64_t row) {
    std::vector<SiteId> sites;
    for (const Decision* statement : decisions.statements_at(row)) {
      sites.push_back(statement->site);
    }
    return sites;
  };
  CHECK(sites_at(2) == std::vector<SiteId>{inner, outer});
  CHECK(sites_at(4) == std::vector<SiteId>{outer});
  CHECK(sites_at(7).empty());
}

}  // namespace parting_test
