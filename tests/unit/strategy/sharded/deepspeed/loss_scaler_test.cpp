// DeepSpeed's dynamic loss scale, step by step (deepspeed/runtime/fp16/loss_scaler.py).
#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/loss_scaler.hpp"

using namespace lockstep;

TEST_CASE("the scale halves at an overflow once hysteresis is used up") {
  LossScaler scaler({.initial_scale_power = 4, .window = 1000, .hysteresis = 2});
  CHECK(scaler.scale() == 16);
  scaler.note_step(true);
  CHECK(scaler.scale() == 16);
  scaler.note_step(true);
  CHECK(scaler.scale() == 8);
  scaler.note_step(true);
  CHECK(scaler.scale() == 4);
  CHECK(scaler.skipped_steps() == 3);
}

TEST_CASE("the scale doubles after a window without overflow") {
  LossScaler scaler({.initial_scale_power = 3, .window = 3, .hysteresis = 1});
  scaler.note_step(true);  // step 0
  CHECK(scaler.scale() == 4);
  scaler.note_step(false);
  scaler.note_step(false);
  CHECK(scaler.scale() == 4);
  scaler.note_step(false);  // three steps behind the overflow
  CHECK(scaler.scale() == 8);
}

TEST_CASE("the scale stays above its minimum, and a static one never moves") {
  LossScaler dynamic({.initial_scale_power = 1, .hysteresis = 1, .min_loss_scale = 1});
  for (int i = 0; i < 5; ++i) {
    dynamic.note_step(true);
  }
  CHECK(dynamic.scale() == 1);
  LossScaler fixed({.loss_scale = 128});
  fixed.note_step(true);
  CHECK(fixed.scale() == 128);
}

TEST_CASE("the first scale is a power of 2 of any sign, up to what torch takes") {
  CHECK(LossScaler({.initial_scale_power = -5}).scale() == 1.0 / 32);
  CHECK(LossScaler({.initial_scale_power = 63}).scale() == 9223372036854775808.0);
  CHECK_FALSE(LossScaler({.initial_scale_power = 63}).is_too_large());
  LossScaler large({.initial_scale_power = 64, .hysteresis = 1});
  CHECK(large.is_too_large());
  CHECK_FALSE(LossScaler({.loss_scale = 1, .initial_scale_power = 64}).is_too_large());
}

TEST_CASE("at the minimum the scale cannot fall, once hysteresis is used up") {
  LossScaler scaler({.initial_scale_power = 0, .hysteresis = 2, .min_loss_scale = 1});
  CHECK_FALSE(scaler.is_at_minimum());
  scaler.note_step(true);
  CHECK(scaler.is_at_minimum());
}

TEST_CASE("consecutive_hysteresis refills what an overflow has used up") {
  for (const bool refills : {false, true}) {
    LossScaler scaler({.initial_scale_power = 4, .hysteresis = 2, .refills_hysteresis = refills});
    scaler.note_step(true);
    scaler.note_step(false);
    scaler.note_step(true);
    CHECK(scaler.scale() == (refills ? 16 : 8));
  }
}

// fp16/fused_optimizer.py, _update_scale: a window of steps behind the one that overflowed.
TEST_CASE("the scale of stage 0 halves at once, doubles a step later and never raises") {
  LossScaler scaler({.initial_scale_power = 4,
                     .window = 2,
                     .hysteresis = 2,
                     .min_loss_scale = 8,
                     .is_of_replicas = true});
  scaler.note_step(false);  // steps 0 and 1: the window is over with step 2
  scaler.note_step(false);
  CHECK(scaler.scale() == 16);
  scaler.note_step(false);
  CHECK(scaler.scale() == 32);
  scaler.note_step(true);  // step 3
  CHECK(scaler.scale() == 16);
  scaler.note_step(true);
  scaler.note_step(true);
  CHECK(scaler.scale() == 8);
  CHECK_FALSE(scaler.is_at_minimum());
  scaler.note_step(false);  // steps 6 to 8: the third is two behind the first without overflow
  scaler.note_step(false);
  CHECK(scaler.scale() == 8);
  scaler.note_step(false);
  CHECK(scaler.scale() == 16);
}
