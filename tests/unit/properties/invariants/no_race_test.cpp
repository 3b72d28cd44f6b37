#include "properties/invariants/no_race.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace no_race_test {
using test::JournalBuilder;
using test::Lists;

namespace {

Slice buffer(uint32_t number, int64_t begin = 0, int64_t elements = 8) {
  return {BufferId{number}, DType::fp32, begin, elements};
}
Op compute(SiteId site) {
  Op op;
  op.kind = OpKind::compute;
  op.kernel = Kernel::scale;
  op.site = site;
  op.stream = compute_stream;
  return op;
}
Row host_row(RowKind kind, uint32_t number) {
  Row row;
  row.row = kind;
  row.tag = static_cast<int32_t>(number);
  return row;
}
void host_read(JournalBuilder& journal, int32_t rank, const Slice& slice) {
  Row row = host_row(RowKind::read, slice.buffer.value);
  OpLists lists;
  lists.reads = {&slice, 1};
  row.lists = journal.journal().lane(rank, LaneId{}).append_lists(lists);
  journal.row(rank, row);
}

// Every rank: an in-place all_reduce on its own stream, and what follows it.
struct Reduced {
  JournalBuilder journal{2};
  SiteId reduce = journal.site("all_reduce", 3);
  SiteId use = journal.site("kernel", 4);
  std::vector<Ticket> tickets;
  Reduced() {
    for (int32_t rank = 0; rank < 2; ++rank) {
      tickets.push_back(journal.op(rank, JournalBuilder::collective(OpKind::all_reduce, reduce, 8),
                                   {{}, {buffer(1)}, {buffer(1)}, {}}));
    }
  }
};

}  // namespace

TEST_CASE("a kernel that reads before the reduction has finished is LS201, once for all ranks") {
  Reduced run;
  for (int32_t rank = 0; rank < 2; ++rank) {
    run.journal.op(rank, compute(run.use), {{}, {buffer(1)}, {buffer(2)}, {}});
  }
  const auto findings = no_race(run.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS201");
  CHECK(findings[0].ranks == RankSet({0, 1}));
  CHECK(findings[0].site() == run.use);
  REQUIRE(findings[0].sites.size() == 2);
  CHECK(findings[0].sites[1].site == run.reduce);
  CHECK(findings[0].sites[1].role == SiteRole::writer);
}

TEST_CASE("an after edge, a host wait, a stream or another part of the buffer makes it safe") {
  Reduced run;
  const Ticket done = run.tickets[0];
  SECTION("after") { run.journal.op(0, compute(run.use), {{done}, {buffer(1)}, {buffer(2)}, {}}); }
  SECTION("after, by way of another operation") {
    const Ticket middle = run.journal.op(0, compute(run.use), {{done}, {}, {}, {}});
    Op other = compute(run.use);
    other.stream = copy_stream;
    run.journal.op(0, other, {{middle}, {buffer(1)}, {buffer(2)}, {}});
  }
  SECTION("host wait") {
    run.journal.settle(0, done);
    run.journal.op(0, compute(run.use), {{}, {buffer(1)}, {buffer(2)}, {}});
    host_read(run.journal, 0, buffer(1));
  }
  SECTION("stream") {
    Op op = compute(run.use);
    op.stream = communication_stream;
    run.journal.op(0, op, {{}, {buffer(1)}, {buffer(2)}, {}});
  }
  SECTION("another part") {
    run.journal.op(0, compute(run.use), {{}, {buffer(1, 8, 8)}, {buffer(2)}, {}});
  }
  CHECK(no_race(run.journal.run()).empty());
}

TEST_CASE("a host read without a wait is LS201 at the writer") {
  Reduced run;
  host_read(run.journal, 1, buffer(1));
  const auto findings = no_race(run.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS201");
  CHECK(findings[0].ranks == RankSet({1}));
  CHECK(findings[0].site() == run.reduce);
}

TEST_CASE("overwriting what a reduction still reads is LS202") {
  Reduced run;
  run.journal.op(0, compute(run.use), {{}, {}, {buffer(1)}, {}});
  const auto findings = no_race(run.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS202");
  CHECK(findings[0].ranks == RankSet({0}));
}

TEST_CASE("releasing a buffer in use on another stream is LS202, after a wait it is fine") {
  Reduced run;
  run.journal.settle(1, run.tickets[1]);
  run.journal.row(1, host_row(RowKind::release, 1));
  CHECK(no_race(run.journal.run()).empty());
  run.journal.row(0, host_row(RowKind::release, 1));
  const auto findings = no_race(run.journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS202");
  CHECK(findings[0].ranks == RankSet({0}));
}

TEST_CASE(
    "releasing a buffer in use on the compute stream is fine, as the allocator reuses there") {
  JournalBuilder journal(1);
  journal.op(0, compute(journal.site("kernel", 3)), {{}, {}, {buffer(1)}, {}});
  journal.row(0, host_row(RowKind::release, 1));
  CHECK(no_race(journal.run()).empty());
}

TEST_CASE("releasing host memory that a copy still reads is fine, as its allocator waits") {
  JournalBuilder journal(1);
  Row allocated = host_row(RowKind::allocate, 1);
  allocated.stream = stream(0, host_device);
  journal.row(0, allocated);
  Op copy = compute(journal.site("copy", 3));
  copy.kind = OpKind::copy;
  copy.stream = copy_stream;
  journal.op(0, copy, {{}, {buffer(1)}, {buffer(2)}, {}});
  journal.row(0, host_row(RowKind::release, 1));
  CHECK(no_race(journal.run()).empty());
}

TEST_CASE("two streams that write one buffer are LS203") {
  JournalBuilder journal(1);
  const SiteId first = journal.site("kernel", 3);
  const SiteId second = journal.site("copy", 4);
  journal.op(0, compute(first), {{}, {}, {buffer(1)}, {}});
  Op copy = compute(second);
  copy.stream = copy_stream;
  journal.op(0, copy, {{}, {buffer(2)}, {buffer(1)}, {}});
  const auto findings = no_race(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS203");
}

TEST_CASE("parts of one grouped call are not ordered, later calls come after all of them") {
  JournalBuilder journal(1);
  const SiteId site = journal.site("grouped", 3);
  const Op part = JournalBuilder::transfer(OpKind::recv, 0, site);
  SECTION("same buffer") {
    journal.grouped(0, {part, part}, {{{}, {}, {buffer(1)}, {}}, {{}, {}, {buffer(1)}, {}}});
    CHECK(no_race(journal.run()).size() == 1);
  }
  SECTION("own buffers") {
    journal.grouped(0, {part, part}, {{{}, {}, {buffer(1)}, {}}, {{}, {}, {buffer(2)}, {}}});
    journal.op(0, part, {{}, {}, {buffer(1)}, {}});
    CHECK(no_race(journal.run()).empty());
  }
}

TEST_CASE("a promise orders one lane after another") {
  JournalBuilder journal(1);
  const SiteId site = journal.site("kernel", 3);
  const LaneId background{1};
  const Ticket ready = journal.promise(0);
  const Ticket written = journal.op(0, compute(site), {{}, {}, {buffer(1)}, {}});
  journal.settle(0, written);
  Op reader = compute(site);
  reader.stream = copy_stream;
  SECTION("fulfilled after the write") {
    journal.fulfil(0, ready);
    journal.settle(0, ready, background);
    journal.op(0, reader, {{}, {buffer(1)}, {}, {}}, Outcome::ok, background);
    CHECK(no_race(journal.run()).empty());
  }
  SECTION("no order") {
    const Ticket again = journal.op(0, compute(site), {{}, {}, {buffer(1)}, {}});
    Completion late = journal.journal().lane(0, LaneId{}).completion(again.sequence);
    late.finish = 1_ms;  // after the other lane has begun
    journal.journal().lane(0, LaneId{}).complete(again.sequence, late);
    journal.op(0, reader, {{}, {buffer(1)}, {}, {}}, Outcome::ok, background);
    journal.settle(0, again);
    CHECK(no_race(journal.run()).size() == 1);
  }
}

TEST_CASE("one statement in a loop over fresh buffers is one finding") {
  JournalBuilder journal(1);
  const SiteId reduce = journal.site("all_reduce", 3);
  const SiteId use = journal.site("kernel", 4);
  for (uint32_t number = 1; number <= 50; ++number) {
    journal.op(0, JournalBuilder::collective(OpKind::all_reduce, reduce, 8),
               {{}, {buffer(number)}, {buffer(number)}, {}});
    journal.op(0, compute(use), {{}, {buffer(number)}, {}, {}});
  }
  const auto findings = no_race(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].follows.back() == "the same on 50 buffers");
}

}  // namespace no_race_test
