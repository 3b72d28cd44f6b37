#include <catch2/catch.hpp>
#include <string>

#include "properties/invariants/learning_rate_scaled.hpp"

using namespace lockstep;

namespace learning_rate_scaled_test {

namespace {

// 8 ranks with batches of 32, a rate of 0.1 found on one of them.
LearningRateUse eight_ranks(double rate) {
  LearningRateUse use;
  use.base_rate = 0.1;
  use.base_batch_size = 32;
  use.rate = rate;
  use.batch_size = 256;
  use.strategy = "ddp";
  return use;
}

std::string title(const LearningRateUse& use) {
  const std::vector<Finding> findings = learning_rate_scaled(use);
  return findings.empty() ? "" : findings.front().title;
}

}  // namespace

TEST_CASE("a rate between the square root and linear is fine") {
  CHECK(title(eight_ranks(0.8)).empty());
  CHECK(title(eight_ranks(0.28284)).empty());
  CHECK(title(eight_ranks(0.5)).empty());
}

TEST_CASE("a rate that stayed, grew too little or grew twice is reported, with what is due") {
  CHECK(title(eight_ranks(0.1)) == "the learning rate is not scaled with the batch");
  CHECK(title(eight_ranks(0.2)) == "the learning rate grew less than the square root of the batch");
  CHECK(title(eight_ranks(6.4)) == "the learning rate is scaled twice");
  CHECK(title(eight_ranks(1.6)) == "the learning rate grew more than the batch");
  const std::vector<Finding> findings = learning_rate_scaled(eight_ranks(0.1));
  CHECK(findings.front().level == Level::warning);
  CHECK(findings.front().follows.front() == "linear scaling gives 0.8, by the square root 0.2828");
}

TEST_CASE("dp has the batch of one device on any number of them") {
  LearningRateUse use = eight_ranks(0.8);
  use.batch_size = 32;
  use.strategy = "dp";
  CHECK(title(use).find("the batch is not larger: under dp") != std::string::npos);
  use.rate = 0.1;
  CHECK(title(use).empty());
}

TEST_CASE("Horovod's own scaling and that of the script are one too many") {
  LearningRateUse use = eight_ranks(6.4);
  use.strategy = "horovod";
  use.framework_scales = use.script_scales = true;
  CHECK(title(use).find("scaled twice: horovod multiplies it") != std::string::npos);
}

TEST_CASE("a smaller batch asks for a smaller rate") {
  LearningRateUse use = eight_ranks(0.1);
  use.batch_size = 8;
  CHECK(title(use) == "the learning rate grew more than the batch");
  use.rate = 0.05;
  CHECK(title(use).empty());
}

}  // namespace learning_rate_scaled_test
