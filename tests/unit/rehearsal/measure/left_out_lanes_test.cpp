// What a simulation has left out on a thread beside the first one of a rank.
#include <catch2/catch.hpp>

#include "properties/diagnosis/call_numbers.hpp"
#include "rehearsal/measure/breakdown.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli::left_out_lanes_test {
namespace {

constexpr SiteId reduction{7};

void add(Journal& journal, uint16_t lane, OpKind kind, uint32_t sequence, Time issue, Time start,
         Time finish) {
  Row row;
  row.kind = kind;
  row.sequence = sequence;
  row.site = kind == OpKind::all_reduce ? reduction : SiteId{};
  row.stream = kind == OpKind::all_reduce ? communication_stream : compute_stream;
  journal.append(0, LaneId{lane}, row);
  journal.lane(0, LaneId{lane}).complete(sequence, {issue, start, finish, Outcome::ok, {}});
}

// Periods of 20 us: the first thread computes for 10 us; then the second, which has two rows in
// each, reduces for 6 us, 2 us after it was asked to. Three periods are left out behind the first.
void fill(Journal& journal) {
  Row promise;
  promise.row = RowKind::promise;
  for (uint32_t period = 0; period < 2; ++period) {
    const Time begin = period == 0 ? Time{} : 80_us;
    add(journal, 0, OpKind::compute, period + 1, begin, begin, begin + 10_us);
    journal.append(0, LaneId{1}, promise);
    add(journal, 1, OpKind::all_reduce, period + 1, begin + 10_us, begin + 12_us, begin + 18_us);
  }
  journal.repeated = ByRank<std::vector<RepeatedRows>>(1, nullptr);
  journal.repeated[0] = {{1, 0, 1, 3, 20_us, 20_us, 0, 0}};
  journal.repeated_beside = ByRank<std::vector<std::vector<RepeatedRows>>>(1, nullptr);
  journal.repeated_beside[0] = {{{2, 0, 2, 3, 20_us, 20_us, 0, 0}}};
}

}  // namespace

TEST_CASE("what another thread did in periods that were left out counts in the parts of a step") {
  Journal journal(1, {});
  fill(journal);
  for (const Time begin : {Time{}, 20_us, 60_us, 80_us}) {
    const Breakdown parts = breakdown_of(journal, 0, begin, begin + 20_us);
    CAPTURE(begin.count());
    CHECK(parts.compute == 10_us);
    CHECK(parts.communication == 6_us);
    CHECK(parts.waiting == 2_us);
    CHECK(parts.idle == 4_us);
  }
}

TEST_CASE("calls of another thread are numbered with those that were left out") {
  Journal journal(1, {});
  fill(journal);
  const CallNumbers numbers(journal, 0, 0);
  CHECK(numbers.of(0) == 1);
  CHECK(numbers.of(1) == 5);
  CHECK(count_with_left_out(journal, 0, calls_of(journal, 0, 0), reduction) == 5);
  CHECK(count_with_left_out(journal, 0, calls_of(journal, 0, 0), SiteId{8}) == 0);
}

}  // namespace lockstep::cli::left_out_lanes_test
