#include "model/trainer/loop/update_tally.hpp"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

using namespace lockstep;

namespace update_tally_test {

namespace {

// Of so many batches; updates that differ in it are rows of their own.
WeightUpdate of_batches(int64_t batches) {
  WeightUpdate update;
  update.batches = batches;
  return update;
}

std::vector<std::pair<int64_t, int64_t>> rows_of(const RankLog& log) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (const WeightUpdate& update : log.weight_updates) {
    rows.emplace_back(update.batches, update.times);
  }
  return rows;
}

}  // namespace

TEST_CASE("an update counts the samples and batches since the one before") {
  UpdateTally tally;
  RankLog log;
  tally.note_forward();
  tally.note_batch(4);
  tally.note_batch(3);
  CHECK(tally.take_batches() == 2);
  tally.note_update(log);
  tally.note_forward();
  tally.note_batch(5);
  CHECK(tally.take_batches() == 1);
  tally.note_update(log);
  CHECK(log.samples_of_steps == std::vector<int64_t>{7, 5});
}

TEST_CASE("two optimizers that step after one forward make one step") {
  UpdateTally tally;
  RankLog log;
  tally.note_forward();
  tally.note_batch(4);
  tally.note_update(log);
  tally.note_update(log);
  CHECK(log.samples_of_steps == std::vector<int64_t>{4});
}

TEST_CASE("a model that is taken over is a row without a step") {
  UpdateTally tally;
  RankLog log;
  tally.note_batch(4);
  tally.note_taken_over(log);
  REQUIRE(log.weight_updates.size() == 1);
  CHECK(log.weight_updates.front().takes_over);
  CHECK(log.weight_updates.front().batches == 1);
  CHECK(tally.take_batches() == 0);
}

TEST_CASE("a period of one row that is left out lengthens the row") {
  RankLog log;
  log.add(of_batches(1));
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(1));
  UpdateTally::repeat_since(earlier, 5, log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{{1, 8}});
}

TEST_CASE("a period of several rows that is left out is written down as often") {
  RankLog log;
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(2));
  log.add(of_batches(1));
  UpdateTally::repeat_since(earlier, 2, log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{
                            {1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}});
}

TEST_CASE("micro-batches that are left out are counted") {
  UpdateTally tally;
  tally.count_micro_batch();
  const int64_t earlier = tally.micro_batches();
  tally.count_micro_batch();
  tally.count_micro_batch();
  tally.repeat_micro_batches_since(earlier, 3);
  CHECK(tally.micro_batches() == 1 + 2 + 3 * 2);
}

}  // namespace update_tally_test
