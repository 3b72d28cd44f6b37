// DeepSpeed's optimizers in host memory that stand in for others. Expected defaults are those of
// torch.optim (AdamW decays by 0.01), of lion-pytorch (a rate of 1e-4, betas 0.9 and 0.99), and of
// deepspeed/ops/adam/cpu_adam.py and deepspeed/ops/lion/cpu_lion.py of 0.19.8.
#include "model/trainer/prepare/host_optimizer.hpp"

#include <catch2/catch.hpp>

#include "model/trainer/prepare/strategy_arguments.hpp"

using namespace lockstep;

namespace host_optimizer_test {

namespace {

std::string on_host(const Object& optimizer) {
  const std::optional<Object> made = host_optimizer(optimizer);
  return made ? text_with(*made, {}) : "none";
}

}  // namespace

TEST_CASE("Adam on the host updates as the one that it stands in for") {
  CHECK(on_host({"Adam", {{"lr", {0.5}}}}) == "{DeepSpeedCPUAdam: {lr: 0.5, adamw_mode: false}}");
  CHECK(on_host({"AdamW", {}}) == "{DeepSpeedCPUAdam: {weight_decay: 0.01}}");
  CHECK(on_host({"AdamW", {{"weight_decay", {0.25}}, {"fused", {true}}}}) ==
        "{DeepSpeedCPUAdam: {weight_decay: 0.25}}");
  CHECK(on_host({"FusedAdam", {{"adam_w_mode", {false}}, {"set_grad_none", {true}}}}) ==
        "{DeepSpeedCPUAdam: {adamw_mode: false}}");
  CHECK(on_host({"DeepSpeedCPUAdam", {}}) == "DeepSpeedCPUAdam");
}

TEST_CASE("Lion on the host has the defaults of the one that it stands in for") {
  CHECK(on_host({"Lion", {}}) == "{DeepSpeedCPULion: {lr: 0.0001, betas: [0.9, 0.99]}}");
  CHECK(on_host({"FusedLion", {}}) == "DeepSpeedCPULion");
}

TEST_CASE("no optimizer on the host does what some arguments and classes ask for") {
  CHECK(on_host({"AdamW", {{"amsgrad", {true}}}}) == "none");
  CHECK(on_host({"Adam", {{"maximize", {true}}}}) == "none");
  CHECK(on_host({"AdamW", {{"amsgrad", {false}}}}) == "{DeepSpeedCPUAdam: {weight_decay: 0.01}}");
  CHECK(on_host({"SGD", {}}) == "none");
  CHECK(on_host({"Adagrad", {}}) == "none");
}

}  // namespace host_optimizer_test
