#include "properties/diagnosis/diagnosis.hpp"

#include <catch2/catch.hpp>

#include "properties/diagnosis/time_limits.hpp"
#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace diagnosis_test {
using test::JournalBuilder;

namespace {

bool tells(const Finding& finding, const std::string& part) {
  for (const std::string& sentence : finding.follows) {
    if (sentence.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// Rank 0 waits in a barrier behind a guard; the others end.
JournalBuilder guarded_barrier(int32_t ranks) {
  JournalBuilder journal(ranks);
  const SiteId guard = journal.site("if", 2, {}, "rank == 0");
  const SiteId barrier = journal.site("barrier", 3, guard);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    journal.choice(rank, guard, ChoiceKind::branch, rank == 0);
  }
  const Ticket ticket = journal.call(0, OpKind::barrier, barrier, 0, Outcome::pending);
  journal.settle(0, ticket);
  journal.stuck(0, {ticket});
  return journal;
}

}  // namespace

TEST_CASE("a hang by a missing participant is one finding with who waits and what it costs") {
  JournalBuilder journal = guarded_barrier(8);
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(tells(findings[0], "rank 0 waits in barrier (call 1 of group world)"));
  CHECK(tells(findings[0], "the watchdog ends the job after 10 min"));
  CHECK(tells(findings[0], "(8 GPUs x 10 min = 1.3 GPU hours)"));
}

TEST_CASE("the backend and the timeout decide what the user sees") {
  JournalBuilder journal = guarded_barrier(8);
  // Recorded with torch 2.11: the process of a rank that ends closes its connections.
  CHECK(tells(diagnose(journal.run(), {Backend::gloo, "", {}})[0],
              "as soon as the processes of ranks 1-7 end, whoever waits for it raises "
              "'Connection closed by peer'"));
  CHECK(tells(diagnose(journal.run(), {Backend::mpi, "", {}})[0], "without limit"));
  CHECK(tells(diagnose(journal.run(), {Backend::nccl, "", 90_s})[0], "after 1.5 min"));
  CHECK(diagnose(journal.run(), {Backend::nccl, "simulated", {}})[0].when.starts_with("simulated"));
}

// _new_group_with_tag of distributed_c10d.py asks for the default of the backend.
TEST_CASE("a group has its own limit, else torch's, and not that of the world") {
  Communicator world;
  Communicator group;
  group.key = 7;
  group.made_at = SiteId{3};
  TimeLimits limits{45_min, 10_min, {}};
  CHECK(limits.of(world) == 45_min);
  CHECK(limits.of(group) == 10_min);
  limits.given[SiteId{3}] = 20_min;
  CHECK(limits.of(group) == 20_min);
  CHECK(limits.of(world) == 45_min);
}

TEST_CASE("a rank that the kernel killed for memory is reported as that") {
  JournalBuilder journal(2);
  const SiteId sum = journal.site("all_reduce", 3);
  journal.stuck(0, {journal.call(0, OpKind::all_reduce, sum, 16, Outcome::pending)});
  journal.call(1, OpKind::all_reduce, sum, 16, Outcome::pending);
  journal.end(
      1, RankEnd::Kind::lost, no_site,
      "ended by signal 9 (Killed), probably by the kernel because this host is out of memory");
  const auto findings = diagnose(journal.run(), {Backend::gloo, "", {}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title.find("host is out of memory") != std::string::npos);
}

TEST_CASE("calls of different kinds over Gloo wait for the time limit, and spoil the group") {
  JournalBuilder journal(2);
  const SiteId sum = journal.site("all_reduce", 3);
  const SiteId spread = journal.site("broadcast", 4);
  journal.stuck(0, {journal.call(0, OpKind::all_reduce, sum, 16, Outcome::pending)});
  journal.stuck(1, {journal.call(1, OpKind::broadcast, spread, 16, Outcome::pending)});
  const auto findings = diagnose(journal.run(), {Backend::gloo, "", {}});
  REQUIRE(findings.size() == 1);
  CHECK(tells(findings[0],
              "raise a timeout error after 30 min (2 processes x 30 min = 1.0 process hours); then "
              "every later call of that group fails at once"));
  CHECK_FALSE(tells(findings[0], "GPU"));
}

TEST_CASE("a clean run has no finding") {
  JournalBuilder journal(4);
  const SiteId site = journal.site("all_reduce", 3);
  for (int32_t rank = 0; rank < 4; ++rank) {
    journal.settle(rank, journal.call(rank, OpKind::all_reduce, site, 16));
  }
  CHECK(diagnose(journal.run()).empty());
}

TEST_CASE("a rank that raises while others receive from it is one finding") {
  JournalBuilder journal(2);
  const SiteId receive = journal.site("recv", 3);
  const SiteId raise = journal.site("raise", 4);
  const Ticket ticket =
      journal.op(1, JournalBuilder::transfer(OpKind::recv, 0, receive), {}, Outcome::pending);
  journal.stuck(1, {ticket});
  journal.end(0, RankEnd::Kind::raised, raise, "bad file");
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].title == "rank 1 waits forever in recv from rank 0: rank 0 raised 'bad file'");
}

TEST_CASE("values exchanged on the way to an unrelated hang are two findings") {
  JournalBuilder journal(4);
  const SiteId a = journal.site("log", 3);
  const SiteId b = journal.site("log", 4);
  const SiteId receive = journal.site("recv", 5);
  for (int32_t rank = 0; rank < 4; ++rank) {
    journal.call(rank, OpKind::all_reduce, rank == 1 ? b : a);
    journal.call(rank, OpKind::all_reduce, rank == 1 ? a : b);
  }
  for (const int32_t rank : {2, 3}) {
    const Ticket ticket = journal.op(
        rank, JournalBuilder::transfer(OpKind::recv, 5 - rank, receive), {}, Outcome::pending);
    journal.stuck(rank, {ticket});
  }
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "LS103");
  CHECK_FALSE(tells(findings[0], "watchdog"));
  CHECK(findings[1].code == "LS107");
  CHECK(tells(findings[1], "watchdog"));
}

TEST_CASE("a participant that comes later than the timeout is an error: the job is killed") {
  JournalBuilder journal(2);
  const SiteId site = journal.site("barrier", 3);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const Ticket ticket = journal.call(rank, OpKind::barrier, site, 0);
    Completion completion;
    completion.issue = rank == 0 ? 1_s : 700_s;
    completion.outcome = Outcome::ok;
    journal.journal().lane(rank, LaneId{}).complete(ticket.sequence, completion);
  }
  journal.run().total_time = 701_s;
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS402");
  CHECK(findings[0].level == Level::error);
  CHECK(findings[0].ranks == RankSet({1}));
  CHECK(diagnose(journal.run(), {Backend::gloo, "", {}}).empty());
}

TEST_CASE("running out of memory on one rank is LS401, with those who wait and what was held") {
  JournalBuilder journal(2);
  const SiteId step = journal.site("all_reduce", 3);
  const SiteId allocate = journal.site("forward", 4);
  journal.stuck(0, {journal.call(0, OpKind::all_reduce, step, 1, Outcome::pending)});
  journal.end(1, RankEnd::Kind::raised, allocate, "out of memory");
  journal.run().ends[1].out_of_memory = true;
  journal.run().memory.resize(2);
  DeviceMemory& memory = journal.run().memory[1][DeviceId{0}];
  memory.capacity = 2_GiB;
  memory.held = 1_GiB;
  memory.held_by_purpose[static_cast<size_t>(Purpose::activation)] = 1_GiB;
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS401");
  CHECK(findings[0].ranks == RankSet({1}));
  REQUIRE(findings[0].why.ways.size() == 1);
  CHECK(findings[0].why.ways[0].value == "1.0 GiB of 2.0 GiB held: activation 1.0 GiB");
  REQUIRE(findings[0].follows.size() == 2);
  CHECK(findings[0].follows[0] == "rank 0 waits in all_reduce (call 1 of group world)");
}

TEST_CASE("neighbours that wait for ranks out of memory are no findings of their own") {
  // Ranks 0 and 1 lack memory; 2 and 3 wait for a message of theirs, and 4 for one of 2.
  JournalBuilder journal(5);
  const SiteId send = journal.site("send", 3);
  for (const auto& [rank, peer] : {std::pair(2, 0), {3, 1}, {4, 2}}) {
    journal.stuck(rank, {journal.op(rank, JournalBuilder::transfer(OpKind::recv, peer, send), {},
                                    Outcome::pending)});
  }
  for (int32_t rank = 0; rank < 2; ++rank) {
    journal.end(rank, RankEnd::Kind::raised, journal.site("forward", 4), "out of memory");
    journal.run().ends[static_cast<size_t>(rank)].out_of_memory = true;
  }
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS401");
  CHECK(findings[0].ranks == RankSet({0, 1}));
  REQUIRE(findings[0].follows.size() == 2);
  CHECK(findings[0].follows[0] == "ranks 2-4 wait in recv");
}

TEST_CASE("all ranks out of memory at one place are one LS401") {
  JournalBuilder journal(2);
  for (int32_t rank = 0; rank < 2; ++rank) {
    journal.end(rank, RankEnd::Kind::raised, journal.site("forward", 4), "out of memory");
    journal.run().ends[static_cast<size_t>(rank)].out_of_memory = true;
  }
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS401");
  CHECK(findings[0].ranks == RankSet({0, 1}));
}

TEST_CASE("twenty thousand hung ranks are diagnosed") {
  constexpr int32_t ranks = 20'000;
  JournalBuilder journal(ranks);
  const SiteId step = journal.site("all_reduce", 3);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (int call = 0; call < 50; ++call) {
      journal.call(rank, OpKind::all_reduce, step, 16);
    }
    if (rank != 123) {
      const Ticket last = journal.call(rank, OpKind::all_reduce, step, 16, Outcome::pending);
      journal.settle(rank, last);
      journal.stuck(rank, {last});
    }
  }
  const auto findings = diagnose(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS102");
  CHECK(findings[0].ranks == RankSet({123}));
}

}  // namespace diagnosis_test
