#include "sim/submission_history.hpp"

#include <catch2/catch.hpp>

namespace submission_history_test {

using lockstep::sim::SubmissionHistory;

void add_words(SubmissionHistory& history) {
  for (const uint64_t word : {7ULL, 0ULL, 12345678901234567ULL, 3ULL}) {
    history.add(word);
  }
}

TEST_CASE("what is said to have come again is what adding it again gives") {
  for (const int64_t times : {0, 1, 2, 3, 8, 77, 1000}) {
    SubmissionHistory counted;
    counted.add(99);
    SubmissionHistory added = counted;
    const SubmissionHistory begin = counted;
    add_words(counted);
    counted.add_again(begin, times);
    for (int64_t turn = 0; turn < times + 1; ++turn) {
      add_words(added);
    }
    CHECK(counted.since(begin) == added.since(begin));
    counted.add(5);
    CHECK(counted.since(begin) != added.since(begin));
    added.add(5);
    CHECK(counted.since(begin) == added.since(begin));
  }
}

TEST_CASE("the same words in a different number or order are another history") {
  const SubmissionHistory begin;
  SubmissionHistory one = begin;
  SubmissionHistory other = begin;
  one.add(1);
  one.add(2);
  other.add(2);
  other.add(1);
  CHECK(one.since(begin) != other.since(begin));
  SubmissionHistory longer = one;
  longer.add(0);
  CHECK(longer.since(begin) != one.since(begin));
}

}  // namespace submission_history_test
