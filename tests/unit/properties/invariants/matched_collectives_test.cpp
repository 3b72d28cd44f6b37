#include "properties/invariants/matched_collectives.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace matched_collectives_test {
using test::JournalBuilder;

namespace {

// Ranks 1.. go on to a library barrier while rank 0 gathers behind a guard.
JournalBuilder guarded_all_gather(int32_t ranks, const std::string& condition) {
  JournalBuilder journal(ranks);
  const SiteId guard = journal.site("if", 16, {}, condition);
  const SiteId gather = journal.site("all_gather", 17, guard);
  const SiteId step = journal.library("ddp: all_reduce of a bucket");
  const SiteId barrier = journal.library("Lightning, train_dataloader");
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (int call = 0; call < 8; ++call) {
      journal.call(rank, OpKind::all_reduce, step, 100);
    }
    journal.choice(rank, guard, ChoiceKind::branch, rank == 0 ? 1 : 0);
    const Ticket last = rank == 0
                            ? journal.call(rank, OpKind::all_gather, gather, 1280, Outcome::pending)
                            : journal.call(rank, OpKind::barrier, barrier, 0, Outcome::pending);
    journal.settle(rank, last);
    journal.stuck(rank, {last});
  }
  return journal;
}

}  // namespace

TEST_CASE("a collective under a rank guard is LS101 at the guarded call") {
  JournalBuilder journal = guarded_all_gather(8, "is_global_zero");
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  const Finding& finding = findings.front();
  CHECK(finding.code == "LS101");
  CHECK(finding.level == Level::error);
  CHECK(finding.title == "rank 0 waits forever in all_gather: ranks 1-7 never call it");
  CHECK(finding.group == "world");
  CHECK(finding.call == 9);
  CHECK(finding.ranks == RankSet({1, 2, 3, 4, 5, 6, 7}));
  CHECK(journal.journal().sites.place(finding.site()) == "case.yaml:17:1");
  REQUIRE(finding.did.size() == 2);
  CHECK(finding.did[0].ranks == RankSet({0}));
  CHECK(finding.did[0].operation == "all_gather fp32 [1280]");
  CHECK(finding.did[1].operation == "barrier");
  CHECK(finding.did[1].call == 9);
  CHECK(finding.why.text == "`is_global_zero` is true on rank 0, false on ranks 1-7");
  REQUIRE(finding.sites.size() == 3);
  CHECK(finding.sites[0].label == "call 9 of group world");
  CHECK(finding.sites[1].role == SiteRole::guard);
  CHECK(finding.sites[1].label == "true on rank 0, false on ranks 1-7");
  CHECK(finding.more == "lockstep explain LS101");
  CHECK_FALSE(finding.fix.empty());
}

TEST_CASE("a branch on data of the rank itself is LS109") {
  JournalBuilder journal = guarded_all_gather(4, "loss > 0.5 and rank < 3");
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS109");
  CHECK(findings[0].ranks == RankSet({1, 2, 3}));
}

TEST_CASE("ranks that all call the same have no finding") {
  JournalBuilder journal(4);
  const SiteId step = journal.site("all_reduce", 3);
  for (int32_t rank = 0; rank < 4; ++rank) {
    for (int call = 0; call < 5; ++call) {
      journal.call(rank, OpKind::all_reduce, step, 16);
    }
  }
  CHECK(matched_collectives(journal.run()).empty());
}

TEST_CASE("both ways of a branch may make the same call") {
  JournalBuilder journal(4);
  const SiteId guard = journal.site("if", 2, {}, "rank == 0");
  const SiteId here = journal.site("broadcast", 3, guard);
  const SiteId there = journal.site("broadcast", 5, guard);
  const SiteId after = journal.site("all_reduce", 7);
  for (int32_t rank = 0; rank < 4; ++rank) {
    journal.choice(rank, guard, ChoiceKind::branch, rank == 0);
    journal.call(rank, OpKind::broadcast, rank == 0 ? here : there, 4);
    journal.call(rank, OpKind::all_reduce, after, 4);
  }
  CHECK(matched_collectives(journal.run()).empty());
}

TEST_CASE("uneven data is LS102 at the call of the loop, not at what comes after the loop") {
  JournalBuilder journal(4);
  const SiteId a = journal.library("ddp: all_reduce of bucket 0");
  const SiteId b = journal.library("ddp: all_reduce of bucket 1");
  const SiteId end = journal.library("Lightning, end of epoch");
  for (int32_t rank = 0; rank < 4; ++rank) {
    const int steps = rank == 2 ? 3 : 2;
    for (int step = 0; step < steps; ++step) {
      const Outcome outcome = step < 2 ? Outcome::ok : Outcome::pending;
      journal.call(rank, OpKind::all_reduce, a, 10, outcome);
      journal.call(rank, OpKind::all_reduce, b, 20, outcome);
    }
    if (rank != 2) {
      journal.call(rank, OpKind::barrier, end, 0, Outcome::pending);
    }
    journal.stuck(rank, {});
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS102");
  CHECK(findings[0].site() == a);
  CHECK(findings[0].call == 5);
  CHECK(findings[0].ranks == RankSet({0, 1, 3}));
  CHECK(findings[0].title == "all_reduce is called 3 times by rank 2 and 2 times by ranks 0-1, 3");
}

TEST_CASE("one rank that ends a loop early and finishes is LS102") {
  JournalBuilder journal(3);
  const SiteId loop = journal.site("repeat", 4, {}, "10 + (rank == 0)");
  const SiteId step = journal.site("all_reduce", 5, loop);
  for (int32_t rank = 0; rank < 3; ++rank) {
    const uint32_t steps = rank == 0 ? 11 : 10;
    journal.choice(rank, loop, ChoiceKind::repeat, steps);
    for (uint32_t call = 0; call < steps; ++call) {
      journal.call(rank, OpKind::all_reduce, step, 1, call < 10 ? Outcome::ok : Outcome::pending);
    }
  }
  journal.stuck(0, {Ticket{11, {}}});
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS102");
  CHECK(findings[0].call == 11);
  CHECK(findings[0].why.text ==
        "`10 + (rank == 0)` repeats 11 times on rank 0, 10 times on ranks 1-2");
  REQUIRE(findings[0].did.size() == 2);
  CHECK(findings[0].did[1].operation == "ends");
  CHECK(findings[0].did[1].call == 0);
}

TEST_CASE("a reduction logged on one rank only is found at its own place, though sizes are equal") {
  // Rank 0 reduces a and b, rank 1 only b: the calls pair crosswise and rank 0 is left over.
  JournalBuilder journal(2);
  const SiteId a = journal.site("log", 3);
  const SiteId b = journal.site("log", 4);
  journal.call(0, OpKind::all_reduce, a);
  const Ticket last = journal.call(0, OpKind::all_reduce, b, 1, Outcome::pending);
  journal.stuck(0, {last});
  journal.call(1, OpKind::all_reduce, b);
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].site() == a);
  CHECK(findings[0].call == 1);
  CHECK(findings[0].ranks == RankSet({1}));
}

TEST_CASE("swapped calls of different size are LS103") {
  JournalBuilder journal(4);
  const SiteId a = journal.site("all_reduce", 3);
  const SiteId b = journal.site("all_reduce", 4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    journal.call(rank, OpKind::all_reduce, rank == 3 ? b : a, rank == 3 ? 2 : 1);
    journal.call(rank, OpKind::all_reduce, rank == 3 ? a : b, rank == 3 ? 1 : 2);
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS103");
  CHECK(findings[0].call == 1);
}

TEST_CASE("swapped calls of equal size complete silently and are LS103") {
  JournalBuilder journal(3);
  const SiteId a = journal.site("log", 3);
  const SiteId b = journal.site("log", 4);
  for (int32_t rank = 0; rank < 3; ++rank) {
    journal.call(rank, OpKind::all_reduce, rank == 1 ? b : a);
    journal.call(rank, OpKind::all_reduce, rank == 1 ? a : b);
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS103");
  CHECK(findings[0].site() == b);
  CHECK(findings[0].did[0].ranks == RankSet({1}));
  REQUIRE(findings[0].follows.size() == 1);
  CHECK(findings[0].follows[0].find("completes") != std::string::npos);
}

TEST_CASE("each argument that differs is LS104 and named") {
  struct Case {
    const char* why;
    void (*change)(Op&);
  };
  const Case cases[] = {{"the sizes differ", [](Op& op) { op.bytes = Bytes(64); }},
                        {"the roots differ", [](Op& op) { op.peer = 1; }},
                        {"the reductions differ", [](Op& op) { op.reduction = Reduction::avg; }},
                        {"the dtypes differ", [](Op& op) { op.dtype = DType::bf16; }}};
  for (const Case& one : cases) {
    JournalBuilder journal(4);
    const SiteId site = journal.site("reduce", 3);
    for (int32_t rank = 0; rank < 4; ++rank) {
      Op op = JournalBuilder::collective(OpKind::reduce, site, 8);
      if (rank == 2) {
        one.change(op);
      }
      journal.op(rank, op);
      journal.call(rank, OpKind::barrier, site);
    }
    const auto findings = matched_collectives(journal.run());
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == "LS104");
    CHECK(findings[0].why.text == one.why);
    CHECK(findings[0].did[0].ranks == RankSet({2}));
    CHECK(findings[0].site() == site);
  }
}

TEST_CASE("the root and the reduction of an operation that has none do not matter") {
  JournalBuilder journal(2);
  const SiteId site = journal.site("barrier", 3);
  for (int32_t rank = 0; rank < 2; ++rank) {
    Op op = JournalBuilder::collective(OpKind::all_gather, site);
    op.peer = rank;
    op.reduction = rank == 0 ? Reduction::sum : Reduction::max;
    journal.op(rank, op);
  }
  CHECK(matched_collectives(journal.run()).empty());
}

TEST_CASE("different members at the same new_group call are LS105") {
  JournalBuilder journal(4);
  const SiteId site = journal.site("new_group", 3);
  for (int32_t rank = 0; rank < 4; ++rank) {
    Op op = JournalBuilder::collective(OpKind::new_group, site);
    op.tag = 1;
    journal.op(
        rank, op,
        {{}, {}, {}, rank == 1 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0, 1}});
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS105");
  CHECK(findings[0].did[0].operation == "new_group of ranks 0-2");
  CHECK(findings[0].did[0].ranks == RankSet({1}));
}

TEST_CASE("a group that one of its members never makes is LS105") {
  JournalBuilder journal(3);
  const SiteId site = journal.site("new_group", 3);
  for (const int32_t rank : {0, 1}) {
    Op op = JournalBuilder::collective(OpKind::new_group, site);
    op.tag = 1;
    const Ticket made = journal.op(rank, op, {{}, {}, {}, {0, 1, 2}}, Outcome::pending);
    journal.stuck(rank, {made});
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS105");
  CHECK(findings[0].ranks == RankSet({2}));
}

TEST_CASE("an exception on one rank is one LS101 that names it") {
  JournalBuilder journal(4);
  const SiteId step = journal.site("all_reduce", 3);
  const SiteId raised = journal.site("raise", 9);
  for (int32_t rank = 0; rank < 4; ++rank) {
    journal.call(rank, OpKind::all_reduce, step);
    if (rank == 3) {
      journal.end(3, RankEnd::Kind::raised, raised, "no such file");
    } else {
      journal.stuck(rank, {journal.call(rank, OpKind::all_reduce, step, 1, Outcome::pending)});
    }
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].title == "ranks 0-2 wait forever in all_reduce: rank 3 raised 'no such file'");
  CHECK(findings[0].why.text == "rank 3 raised 'no such file' at case.yaml:9:1");
  CHECK(findings[0].call == 2);
}

TEST_CASE("a return behind a branch is the cause of calls that come after it") {
  JournalBuilder journal(3);
  const SiteId guard = journal.site("if", 2, {}, "rank == 2");
  const SiteId step = journal.site("all_reduce", 5);
  for (int32_t rank = 0; rank < 3; ++rank) {
    journal.choice(rank, guard, ChoiceKind::branch, rank == 2);
    if (rank != 2) {
      journal.stuck(rank, {journal.call(rank, OpKind::all_reduce, step, 1, Outcome::pending)});
    }
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].why.site == guard);
  CHECK(findings[0].ranks == RankSet({2}));
}

TEST_CASE("defects of groups that share no rank are distinguished, their echoes are not") {
  JournalBuilder journal(4);
  const SiteId make = journal.site("new_group", 1);
  for (const int32_t rank : {0, 1, 2, 3}) {
    Op op = JournalBuilder::collective(OpKind::new_group, make);
    journal.op(rank, op, {{}, {}, {}, {0, 1}});
    journal.op(rank, op, {{}, {}, {}, {2, 3}});
  }
  journal.group({0, 1}, 0);
  journal.group({2, 3}, 1);
  const SiteId left = journal.site("all_reduce", 5);
  const SiteId right = journal.site("broadcast", 6);
  const SiteId world = journal.site("barrier", 7);
  const GroupId group{1};
  for (const int32_t rank : {0, 1, 2, 3}) {
    journal.op(rank,
               JournalBuilder::collective(rank < 2 ? OpKind::all_reduce : OpKind::broadcast,
                                          rank < 2 ? left : right, rank % 2 == 0 ? 4 : 8, group));
  }
  SECTION("two groups, two findings") {
    const auto findings = matched_collectives(journal.run());
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].group == "ranks 0-1");
    CHECK(findings[1].group == "ranks 2-3");
    CHECK(findings[0].code == "LS104");
    CHECK(findings[1].code == "LS104");
  }
  SECTION("what comes later on the same ranks is a consequence") {
    journal.call(0, OpKind::barrier, world);
    const auto findings = matched_collectives(journal.run());
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].group == "ranks 0-1");
    REQUIRE(findings[0].follows.size() == 2);
    CHECK(findings[0].follows[1] == "the calls of group world differ too, from call 3 on");
  }
}

TEST_CASE("one statement that is wrong in several groups is one finding") {
  constexpr int32_t groups = 500;
  JournalBuilder journal(2 * groups);
  const SiteId step = journal.site("all_reduce", 5);
  for (int32_t group = 0; group < groups; ++group) {
    journal.group({2 * group, 2 * group + 1}, group);
    for (const int32_t member : {0, 1}) {
      journal.call(2 * group + member, OpKind::all_reduce, step, 4 + member, Outcome::ok,
                   GroupId{1});
    }
  }
  const auto findings = matched_collectives(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS104");
  CHECK(findings[0].follows.back().starts_with("the same in 499 more groups, the first: ranks "));
}

TEST_CASE("a hundred thousand ranks with fifty calls are compared") {
  constexpr int32_t ranks = 100'000;
  JournalBuilder journal(ranks);
  const SiteId step = journal.site("all_reduce", 3);
  const SiteId extra = journal.site("barrier", 4);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (int call = 0; call < 50; ++call) {
      journal.call(rank, OpKind::all_reduce, step, 16);
    }
  }
  SECTION("alike") { CHECK(matched_collectives(journal.run()).empty()); }
  SECTION("one differs") {
    journal.stuck(77'777, {journal.call(77'777, OpKind::barrier, extra, 0, Outcome::pending)});
    const auto findings = matched_collectives(journal.run());
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == "LS101");
    CHECK(findings[0].title ==
          "rank 77777 waits forever in barrier: "
          "ranks 0-77776, 77778-99999 never call it");
  }
}

}  // namespace matched_collectives_test
