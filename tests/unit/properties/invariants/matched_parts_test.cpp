#include "properties/invariants/matched_parts.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace matched_parts_test {
using test::JournalBuilder;

namespace {

// Rank r sends `sent[r]` elements to rank 0 and 1, and expects `got[r]` from them.
JournalBuilder exchange(const std::vector<std::vector<int64_t>>& splits) {
  JournalBuilder journal(2);
  const SiteId site = journal.site("all_to_all", 3);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const auto& own = splits[static_cast<size_t>(rank)];
    journal.op(rank, JournalBuilder::collective(OpKind::all_to_all, site, own[0] + own[1]),
               {{}, {}, {}, own});
  }
  return journal;
}

}  // namespace

TEST_CASE("an uneven all_to_all whose parts fit has no finding") {
  JournalBuilder journal = exchange({{1, 2, 1, 5}, {5, 7, 2, 7}});
  CHECK(matched_parts(journal.run()).empty());
}

TEST_CASE("a part that is not what the other expects is LS104") {
  JournalBuilder journal = exchange({{1, 2, 1, 5}, {5, 7, 3, 7}});
  const auto findings = matched_parts(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS104");
  CHECK(findings[0].title == "rank 0 sends fp32 [2] to rank 1, which expects fp32 [3]");
  CHECK(findings[0].call == 1);
}

TEST_CASE("a message of another size than its receive is LS104, reported once for a loop") {
  JournalBuilder journal(2);
  const SiteId send = journal.site("send", 3);
  const SiteId receive = journal.site("recv", 4);
  for (int step = 0; step < 3; ++step) {
    journal.op(0, JournalBuilder::transfer(OpKind::send, 1, send, 4));
    journal.op(1, JournalBuilder::transfer(OpKind::recv, 0, receive, step == 0 ? 4 : 8));
  }
  const auto findings = matched_parts(journal.run());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS104");
  CHECK(findings[0].site() == send);
  CHECK(findings[0].ranks == RankSet({0, 1}));
}

TEST_CASE("a receive from any rank is compared with the message that it got") {
  JournalBuilder journal(3);
  const SiteId send = journal.site("send", 3);
  const SiteId receive = journal.site("recv", 4);
  for (const int32_t source : {2, 1}) {
    const Ticket ticket =
        journal.op(0, JournalBuilder::transfer(OpKind::recv, any_rank, receive, source));
    Row chosen;
    chosen.row = RowKind::choice;
    chosen.tag = static_cast<int32_t>(ChoiceKind::any_source);
    chosen.sequence = ticket.sequence;
    chosen.peer = source;
    journal.row(0, chosen);
    journal.op(source, JournalBuilder::transfer(OpKind::send, 0, send, source));
  }
  CHECK(matched_parts(journal.run()).empty());
}

}  // namespace matched_parts_test
