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

TEST_CASE("a period of one row that is left out lengthens the row") {
  RankLog log;
  log.add(of_batches(1));
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(1));
  repeat_updates(UpdateTally::updates_since(earlier, log), 5, log);
  CHECK(rows_of(log) == std::vector<std::pair<int64_t, int64_t>>{{1, 8}});
}

TEST_CASE("a period of several rows that is left out is written down as often") {
  RankLog log;
  log.add(of_batches(1));
  const UpdateTally::Logged earlier = UpdateTally::logged(log);
  log.add(of_batches(2));
  log.add(of_batches(1));
  repeat_updates(UpdateTally::updates_since(earlier, log), 2, log);
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

TEST_CASE("updates that are left out have the rates of their steps") {
  RankLog log;
  TrainingProgram program;
  program.plan.optimizers.resize(1);
  program.optimizer_names = {""};
  OptimizerRates rates(program);
  UpdatesByBatch updates({of_batches(2)}, 0);  // a step for every second batch
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
