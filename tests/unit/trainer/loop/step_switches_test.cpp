#include "model/trainer/loop/step_switches.hpp"

#include <catch2/catch.hpp>
#include <optional>

using namespace lockstep;

namespace step_switches_test {

TEST_CASE("a batch that steps synchronises, whatever the one before did") {
  StepSwitches switches(true);
  switches.begin_batch(false, false, 0.5, true);
  CHECK(switches.options(true).in_full);
  CHECK_FALSE(switches.options(true).synchronise);
  CHECK(switches.options(true).loss_factor == 0.5);
  switches.end_batch();
  CHECK(switches.options(true).synchronise);
}

TEST_CASE("gradients are exchanged where neither no_sync nor the module forbids it") {
  StepSwitches switches(true);
  const bool outer = switches.set_synchronise(false);
  CHECK(outer);
  CHECK_FALSE(switches.options(true).synchronise);
  switches.set_requires_gradient_sync(false);
  switches.set_synchronise(outer);
  CHECK(switches.synchronises());
  CHECK_FALSE(switches.options(true).synchronise);
  switches.set_requires_gradient_sync(true);
  CHECK(switches.options(true).synchronise);
}

TEST_CASE("optimization is by hand only where gradients are asked for") {
  const StepSwitches by_hand(false);
  CHECK(by_hand.options(true).manual);
  CHECK_FALSE(by_hand.options(false).manual);
  CHECK_FALSE(StepSwitches(true).options(true).manual);
}

TEST_CASE("toggle_model within another gives back the outer optimizer") {
  StepSwitches switches(false);
  CHECK(switches.set_toggled(1) == std::nullopt);
  const std::optional<size_t> outer = switches.set_toggled(0);
  CHECK(switches.options(true).only_optimizer == std::optional<size_t>(0));
  switches.set_toggled(outer);
  CHECK(switches.options(true).only_optimizer == std::optional<size_t>(1));
}

}  // namespace step_switches_test
