#include "properties/invariants/no_deadlock.hpp"

#include <catch2/catch.hpp>

#include "properties/diagnosis/waiting_text.hpp"
#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace no_deadlock_test {
using test::JournalBuilder;

namespace {

// Both ranks send first and receive then, on one stream; `outcome` of all of it.
JournalBuilder head_to_head(bool hung, bool grouped = false) {
  JournalBuilder journal(2);
  const SiteId send = journal.site("send", 3);
  const SiteId receive = journal.site("recv", 4);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const Op to = JournalBuilder::transfer(OpKind::send, 1 - rank, send);
    const Op from = JournalBuilder::transfer(OpKind::recv, 1 - rank, receive);
    const Outcome outcome = hung ? Outcome::pending : Outcome::ok;
    Ticket last;
    if (grouped) {
      last = journal.grouped(rank, {to, from}, {{}, {}}, outcome);
    } else {
      journal.op(rank, to, {}, outcome);
      last = journal.op(rank, from, {}, outcome);
    }
    journal.settle(rank, last);
    if (hung) {
      journal.stuck(rank, {last});
    }
  }
  return journal;
}

}  // namespace

TEST_CASE("two ranks that send first hang by a buffering hazard") {
  JournalBuilder journal = head_to_head(true);
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS108");
  CHECK(findings[0].level == Level::error);
  CHECK(findings[0].ranks == RankSet({0, 1}));
  CHECK(journal.journal().sites.place(findings[0].site()) == "case.yaml:3:1");
}

TEST_CASE("two ranks that send first and end by buffering are warned of") {
  JournalBuilder journal = head_to_head(false);
  CHECK(no_deadlock(journal.run()).empty());
  const auto findings = no_buffering_hazard(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS108");
  CHECK(findings[0].level == Level::warning);
  CHECK(findings[0].title ==
        "ranks 0-1 send before it is received: this completes only if sends are buffered");
}

TEST_CASE("a grouped send and receive needs no buffering") {
  JournalBuilder journal = head_to_head(false, true);
  CHECK(no_buffering_hazard(journal.run()).empty());
}

TEST_CASE("two ranks that receive first are a point-to-point cycle") {
  JournalBuilder journal(2);
  const SiteId receive = journal.site("recv", 4);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const Ticket ticket = journal.op(
        rank, JournalBuilder::transfer(OpKind::recv, 1 - rank, receive), {}, Outcome::pending);
    journal.settle(rank, ticket);
    journal.stuck(rank, {ticket});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS107");
  CHECK(findings[0].title == "ranks 0-1 wait for each other in recv");
  CHECK(findings[0].why.text ==
        "rank 0 waits in recv from rank 1 of group world for rank 1; "
        "rank 1 waits in recv from rank 0 of group world for rank 0");
}

TEST_CASE("a receive from a rank that ends without sending is LS101") {
  JournalBuilder journal(3);
  const SiteId receive = journal.site("recv", 4);
  const Ticket ticket =
      journal.op(1, JournalBuilder::transfer(OpKind::recv, 0, receive), {}, Outcome::pending);
  journal.stuck(1, {ticket});
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].title == "rank 1 waits forever in recv from rank 0: rank 0 never sends");
}

TEST_CASE("two groups used in opposite order wait in a circle") {
  // Ranks 0 and 1 share groups A and B; each waits on the host for its first before the second.
  JournalBuilder journal(2);
  journal.group({0, 1}, 0);
  journal.group({0, 1}, 1);
  const SiteId a = journal.site("all_reduce", 5);
  const SiteId b = journal.site("all_reduce", 6);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const Ticket ticket = journal.call(rank, OpKind::all_reduce, rank == 0 ? a : b, 1,
                                       Outcome::pending, GroupId{rank == 0 ? 1u : 2u});
    journal.settle(rank, ticket);
    journal.stuck(rank, {ticket});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS106");
  CHECK(findings[0].title == "ranks 0-1 wait for each other in all_reduce of 2 groups");
}

TEST_CASE("two groups on one stream in opposite order wait in a circle without any host wait") {
  JournalBuilder journal(2);
  journal.group({0, 1}, 0);
  journal.group({0, 1}, 1);
  const SiteId site = journal.site("all_reduce", 5);
  for (int32_t rank = 0; rank < 2; ++rank) {
    for (const uint32_t step : {0u, 1u}) {
      const uint32_t group = rank == 0 ? 1 + step : 2 - step;
      journal.call(rank, OpKind::all_reduce, site, 1, Outcome::pending, GroupId{group});
    }
    journal.stuck(rank, {Ticket{2, {}}});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS106");
  CHECK(findings[0].ranks == RankSet({0, 1}));
}

TEST_CASE("a message that was lost is distinguished from one that was never sent") {
  JournalBuilder journal(3);
  const SiteId site = journal.site("all_reduce", 5);
  for (int32_t rank = 0; rank < 3; ++rank) {
    const Ticket ticket =
        journal.call(rank, OpKind::all_reduce, site, 1, rank == 2 ? Outcome::ok : Outcome::pending);
    journal.settle(rank, ticket);
    if (rank != 2) {
      journal.stuck(rank, {ticket});
    }
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == RankSet({2}));
  CHECK(findings[0].title ==
        "ranks 0-1 wait forever in all_reduce: rank 2 went on: its message was lost");
}

TEST_CASE("a lane waits forever for a promise of a lane that ended") {
  JournalBuilder journal(1);
  const LaneId background{1};
  const SiteId site = journal.site("all_reduce", 5);
  journal.call(0, OpKind::all_reduce, site);
  const Ticket promise = journal.promise(0);
  journal.op(0, JournalBuilder::collective(OpKind::barrier, site), {}, Outcome::ok, background);
  SECTION("never fulfilled") {
    journal.settle(0, promise);
    journal.stuck(0, {promise});
    const auto findings = no_deadlock(journal.run());
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == "LS101");
  }
  SECTION("fulfilled") {
    journal.fulfil(0, promise, background);
    journal.settle(0, promise);
    CHECK(no_deadlock(journal.run()).empty());
  }
}

TEST_CASE("a promise waits for the lanes that have not ended") {
  JournalBuilder journal(2);
  const LaneId ended{1};
  const LaneId background{2};
  const SiteId site = journal.site("all_gather", 5);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const Ticket promise = journal.promise(rank);
    journal.op(rank, JournalBuilder::collective(OpKind::barrier, site), {}, Outcome::ok, ended);
    const Ticket gathered = journal.op(rank, JournalBuilder::collective(OpKind::all_gather, site),
                                       {}, rank == 1 ? Outcome::ok : Outcome::pending, background);
    journal.settle(rank, promise);
    journal.stuck(rank, {promise});
    journal.settle(rank, gathered, background);
    if (rank == 0) {
      journal.stuck(rank, {gathered}, background);
    }
  }
  const Ticket later = journal.op(1, JournalBuilder::collective(OpKind::gather, site), {},
                                  Outcome::pending, background);
  journal.settle(1, later, background);
  journal.stuck(1, {later}, background);
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title ==
        "rank 0 waits forever in all_gather: rank 1 went on: its message was lost");
}

TEST_CASE("a program may wait forever for a thread that goes on without end") {
  JournalBuilder journal(1);
  const LaneId background{1};
  const SiteId site = journal.site("barrier", 5);
  const Ticket promise = journal.promise(0);
  const Ticket slept =
      journal.op(0, JournalBuilder::collective(OpKind::barrier, site), {}, Outcome::ok, background);
  journal.settle(0, slept, background);
  journal.stuck(0, {slept}, background);  // that has ended: the thread is about to go on
  journal.settle(0, promise);
  journal.stuck(0, {promise});
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title == "rank 0 waits forever for a signal: rank 0 does not give it");
}

TEST_CASE("a thousand ranks that send in a ring before they receive are one finding") {
  constexpr int32_t ranks = 1000;
  JournalBuilder journal(ranks);
  const SiteId send = journal.site("send", 3);
  const SiteId receive = journal.site("recv", 4);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    journal.op(rank, JournalBuilder::transfer(OpKind::send, (rank + 1) % ranks, send), {},
               Outcome::pending);
    const Ticket last = journal.op(
        rank, JournalBuilder::transfer(OpKind::recv, (rank + ranks - 1) % ranks, receive), {},
        Outcome::pending);
    journal.settle(rank, last);
    journal.stuck(rank, {last});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS108");
  CHECK(findings[0].ranks == RankSet::all(ranks));
}

TEST_CASE("what waits is reported by call, ranks together") {
  JournalBuilder journal(4);
  const SiteId site = journal.site("barrier", 5);
  for (int32_t rank = 0; rank < 3; ++rank) {
    journal.stuck(rank, {journal.call(rank, OpKind::barrier, site, 0, Outcome::pending)});
  }
  CHECK(waiting_text(journal.run(), 4) ==
        std::vector<std::string>{"ranks 0-2 wait in barrier (call 1 of group world)"});
}

TEST_CASE("of many groups that wait those of the lowest ranks are reported, in their order") {
  constexpr int32_t groups = 12;
  JournalBuilder journal(2 * groups);
  const SiteId site = journal.site("scatter", 5);
  for (int32_t group = 0; group < groups; ++group) {
    journal.group({2 * group, 2 * group + 1}, group);
    journal.stuck(2 * group + 1, {journal.call(2 * group + 1, OpKind::scatter, site, 1,
                                               Outcome::pending, GroupId{1})});
  }
  CHECK(waiting_text(journal.run(), 3) ==
        std::vector<std::string>{"rank 1 waits in scatter (call 1 of group ranks 0-1)",
                                 "rank 3 waits in scatter (call 1 of group ranks 2-3)",
                                 "rank 5 waits in scatter (call 1 of group ranks 4-5)"});
}

TEST_CASE("what a rank that is gone had not finished is no hang of its own") {
  JournalBuilder journal(2);
  const SiteId layer = journal.site("kernel", 4);
  const SiteId site = journal.site("all_reduce", 5);
  for (int32_t rank = 0; rank < 2; ++rank) {
    Op kernel;
    kernel.site = layer;
    journal.op(rank, kernel, {}, rank == 0 ? Outcome::ok : Outcome::pending);
    const Ticket ticket = journal.call(rank, OpKind::all_reduce, site, 1, Outcome::pending);
    journal.settle(rank, ticket);
    if (rank == 0) {
      journal.stuck(rank, {ticket});
    }
  }
  journal.end(1, RankEnd::Kind::lost);
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title ==
        "rank 0 waits forever in all_reduce: rank 1 was lost after its operation 2, all_reduce");
}

TEST_CASE("a kernel behind a call that does not complete is no finding of its own") {
  JournalBuilder journal(2);
  const SiteId layer = journal.site("kernel", 4);
  const SiteId site = journal.site("all_reduce", 5);
  for (int32_t rank = 0; rank < 2; ++rank) {
    journal.call(rank, OpKind::all_reduce, site, 1, Outcome::pending);
    Op kernel;
    kernel.site = layer;
    kernel.stream = stream(queue::compute);
    const Ticket ticket = journal.op(rank, kernel, {}, Outcome::pending);  // lists were not kept
    journal.settle(rank, ticket);
    journal.stuck(rank, {ticket});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].did.front().operation.starts_with("all_reduce"));
}

TEST_CASE("messages of two tags never meet, and the tags are named") {
  JournalBuilder journal(2);
  const SiteId site = journal.site("message", 5);
  Op sent = JournalBuilder::transfer(OpKind::send, 1, site);
  sent.tag = 1;
  Op received = JournalBuilder::transfer(OpKind::recv, 0, site);
  received.tag = 2;
  for (const auto& [rank, op] : {std::pair(0, sent), std::pair(1, received)}) {
    const Ticket ticket = journal.op(rank, op, {}, Outcome::pending);
    journal.settle(rank, ticket);
    journal.stuck(rank, {ticket});
  }
  const auto findings = no_deadlock(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].why.text.ends_with(
      "rank 0 sends with tag 1, and rank 1 receives with tag 2, so these two do not meet"));
  CHECK(findings[0].fix.front() ==
        "if both are the same message, give them the same tag; otherwise");
  CHECK(findings[0].fix.size() > 1);
}

}  // namespace no_deadlock_test
