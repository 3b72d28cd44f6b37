// Worked out by hand from model_checkpoint.py, _update_best_and_save and format_checkpoint_name.
#include "model/trainer/callback/best_checkpoints.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "model/trainer/callback/checkpoint_name.hpp"

using namespace lockstep;

TEST_CASE("the worst of the k best makes room for a better one") {
  BestCheckpoints best(MonitorMode::min, 2);
  best.add("a", 3);
  CHECK(best.has_room());
  best.add("b", 1);
  CHECK_FALSE(best.has_room());
  CHECK(best.best() == "b");
  CHECK_FALSE(best.beats_worst(3));
  CHECK(best.beats_worst(2));
  CHECK(best.drop_worst() == "a");
  best.add("c", 2);
  CHECK(best.best() == "b");
  CHECK(best.best_score() == 1.0);
  CHECK(best.drop_worst() == "c");
}

TEST_CASE("of equal scores the first stands") {
  BestCheckpoints best(MonitorMode::max, 2);
  best.add("a", 1);
  best.add("b", 1);
  CHECK(best.best() == "a");
  CHECK(best.drop_worst() == "a");
}

TEST_CASE("all are kept with save_top_k -1") {
  BestCheckpoints best(MonitorMode::min, -1);
  for (const char* name : {"a", "b", "c"}) {
    CHECK(best.has_room());
    best.add(name, 1);
  }
  CHECK(best.kept().size() == 3);
  CHECK_FALSE(best.drop_worst());
}

TEST_CASE("NaN is the worst score") {
  BestCheckpoints best(MonitorMode::min, 2);
  best.add("a", std::numeric_limits<double>::quiet_NaN());
  best.add("b", 5);
  CHECK(best.best() == "b");
  CHECK(best.beats_worst(1e30));
  CHECK_FALSE(best.beats_worst(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("file names follow the template") {
  const std::map<std::string, double> metrics = {{"val_loss", 0.123456}, {"n", 2}};
  CHECK(CheckpointName{}.of(1, 4, metrics) == "epoch=1-step=4.ckpt");
  CHECK(CheckpointName{"{epoch:02d}-{val_loss:.2f}"}.of(2, 0, metrics) ==
        "epoch=02-val_loss=0.12.ckpt");
  CHECK(CheckpointName{"e{epoch}-{missing:d}", false}.of(2, 0, metrics) == "e2-0.ckpt");
  CHECK(CheckpointName{"{n}"}.of(0, 0, metrics) == "n=2.0.ckpt");
  CHECK(CheckpointName{"last"}.of(0, 0, metrics, 1) == "last-v1.ckpt");
  CHECK_THROWS(CheckpointName{"{val_loss:d}"}.of(0, 0, metrics));
}

// pickle.dumps of texts of 24, 255 and 256 bytes, and of True, in Python 3.11.
TEST_CASE("a pickled object has the size that Python gives it") {
  CHECK(pickled_bytes_of_text(24) == 39);
  CHECK(pickled_bytes_of_text(255) == 270);
  CHECK(pickled_bytes_of_text(256) == 274);
  CHECK(pickled_bytes_of_bool == 4);
}
