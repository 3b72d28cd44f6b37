#include "model/trainer/loop/update_tally.hpp"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "model/trainer/loop/repeated_updates.hpp"

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

TEST_CASE("a period of one update that is left out lengthens the row") {
  RankLog log;
  log.add(of_batches(1));
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(1));
  PeriodCounts period;
  period.updates = UpdateTally::updates_since(earlier, log);
  count_from_beginning(period.updates, 0);
  repeat_updates(period, 5, UpdateTally(), log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{{1, 8}});
}

TEST_CASE("a period of several updates that is left out is written down as often") {
  RankLog log;
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(2));
  log.add(of_batches(1));
  PeriodCounts period;
  period.updates = UpdateTally::updates_since(earlier, log);
  count_from_beginning(period.updates, 0);
  repeat_updates(period, 2, UpdateTally(), log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{
                            {1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}});
}

TEST_CASE("the first update of a period counts the batches that were left out before it") {
  // Of a period of one batch with a step: in the log it followed two batches without.
  std::vector<WeightUpdate> updates = {of_batches(3)};
  count_from_beginning(updates, 2);
  PeriodCounts period;
  period.updates = updates;
  UpdateTally tally;
  tally.leave_out({5, 1}, false, 0, 4);  // four batches without a step
  RankLog log;
  repeat_updates(period, 3, tally, log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{{5, 1}, {1, 2}});
}

TEST_CASE("what is left out is counted since the last update") {
  UpdateTally tally;
  tally.count_micro_batch();
  tally.note_batch(4);
  tally.leave_out({4, 1}, false, 2, 3);
  CHECK(tally.since_update() == UpdateTally::SinceUpdate{16, 4});
  CHECK(tally.micro_batches() == 1 + 3 * 2);
  tally.leave_out({8, 2}, true, 0, 5);  // two batches behind the last update of each
  CHECK(tally.since_update() == UpdateTally::SinceUpdate{8, 2});
}

TEST_CASE("updates that are left out have the rates of their steps") {
  RankLog log;
  TrainingProgram program;
  program.plan.optimizers.resize(1);
  program.optimizer_names = {""};
  OptimizerRates rates(program);
  PeriodCounts period;  // a step for every second batch
  period.batches = 2;
  period.updates = {of_batches(2)};
  UpdatesByBatch updates(period, UpdateTally());
  for (int batch = 1; batch <= 6; ++batch) {
    rates.set_learning_rate(0, batch < 4 ? 0.1 : 0.01);
    updates.take(program.optimizer_names, rates, log);
  }
  REQUIRE(log.weight_updates.size() == 2);
  CHECK(log.weight_updates[0].learning_rate == 0.1);
  CHECK(log.weight_updates[0].times == 1);
  CHECK(log.weight_updates[1].learning_rate == 0.01);
  CHECK(log.weight_updates[1].times == 2);
}

TEST_CASE("a log of updates that is full counts no further") {
  RankLog log;
  for (size_t row = 0; row < RankLog::weight_updates_max; ++row) {
    log.add(of_batches(1 + static_cast<int64_t>(row % 2)));
  }
  log.add(of_batches(2));  // goes on with the last row
  CHECK(log.weight_updates.back().times == 2);
  log.add(of_batches(1));
  log.add(of_batches(2));
  CHECK(log.weight_updates.size() == RankLog::weight_updates_max);
  CHECK(log.weight_updates.back().times == 2);
}

}  // namespace update_tally_test
