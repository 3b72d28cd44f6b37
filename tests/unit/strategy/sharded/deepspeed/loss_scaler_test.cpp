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
