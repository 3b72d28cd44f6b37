#include "model/program/packed_completions.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

using namespace lockstep;

namespace packed_completions_test {

namespace {

bool same(const Completion& left, const Completion& right) {
  return left.issue == right.issue && left.start == right.start && left.finish == right.finish &&
         left.outcome == right.outcome && left.source == right.source;
}

void check_round_trip(const std::vector<Completion>& completions) {
  const PackedCompletions small = packed(completions);
  for (size_t index = 0; index < completions.size(); ++index) {
    CHECK(same(completion_in(small.bytes.get(), index), completions[index]));
  }
}

}  // namespace

TEST_CASE("completions come back from packing as they were") {
  check_round_trip({});
  check_round_trip({Completion{}});
  check_round_trip({{Time(5), Time(7), Time(9), Outcome::ok, {}},
                    {Time(1'000'000'000'000), Time(1'000'000'000'000), Time(1'000'000'000'255),
                     Outcome::ok, RankId{12}},
                    {Time(6), Time(6), Time(262), Outcome::failed, RankId{70'000}}});
}

TEST_CASE("times of any size and order come back from packing") {
  const Time greatest(std::numeric_limits<int64_t>::max());
  const Time least(std::numeric_limits<int64_t>::min());
  check_round_trip({{greatest, least, greatest, Outcome::ok, {}},
                    {least, greatest, Time(0), Outcome::timed_out, RankId{0xffffffffu}},
                    {Time(3), Time(2), Time(1), Outcome::ok, {}}});
}

// By hand: issues span 2^40 - 1 (5 bytes), waits 0 to 300 (2 bytes), durations 0 to 255 (1 byte);
// outcomes and sources are all equal (0 bytes): 8 bytes each in place of sizeof(Completion).
TEST_CASE("a packed completion takes as many bytes as its greatest differences need") {
  std::vector<Completion> completions(1000, {Time(0), Time(0), Time(0), Outcome::ok, {}});
  completions[1] = {Time((int64_t{1} << 40) - 1),
                    Time((int64_t{1} << 40) + 299),
                    Time((int64_t{1} << 40) + 554),
                    Outcome::ok,
                    {}};
  check_round_trip(completions);
  const PackedCompletions none = packed(std::vector<Completion>());
  CHECK(packed(completions).size - none.size == 8 * 1000);
}

}  // namespace packed_completions_test
