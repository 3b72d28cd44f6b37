// Ranks that the script gives other arguments, or that freeze other layers.
#include <algorithm>
#include <catch2/catch.hpp>

#include "model/trainer/prepare/strategy_arguments.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace arguments_of_ranks_test {

namespace {

PlainValue whole(int64_t number) { return {number, {}}; }
PlainValue list(std::vector<int64_t> numbers) {
  PlainValue::List items;
  for (const int64_t number : numbers) {
    items.push_back(whole(number));
  }
  return {std::move(items), {}};
}

Preparation prepared(const std::string& strategy, const std::string& layer = "{Linear: [4, 2]}") {
  return prepare(scenario_of("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                             "model: {input: [4], layers: [" +
                             layer +
                             "], loss: MSELoss}\n"
                             "trainer: {accelerator: gpu, devices: 4, max_epochs: 1, strategy: " +
                             strategy + "}\ndata: {train: {samples: 16, batch_size: 2}}\n"),
                 standard_strategies());
}

bool says(const Preparation& preparation, const std::string& words) {
  return std::ranges::any_of(preparation.problems, [&](const Problem& problem) {
    return problem.message.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a value of some ranks is theirs, at any depth, and another or none the others'") {
  const PlainValue::Map pair{{"on_ranks", list({1, 3})}, {"value", whole(7)}};
  const PlainValue outer{PlainValue::Map{{"modules", {pair, {}}}, {"mesh", whole(2)}}, {}};
  CHECK(text_of(value_on_rank(outer, 3)) == "{modules: 7, mesh: 2}");
  CHECK(text_of(value_on_rank(outer, 0)) == "{modules: null, mesh: 2}");
  std::vector<int64_t> ranks;
  CHECK(add_named_ranks(outer, ranks));
  CHECK(ranks == std::vector<int64_t>{1, 3});
  PlainValue::Map with_other = pair;
  with_other.push_back({"otherwise", whole(5)});
  CHECK(text_of(value_on_rank({with_other, {}}, -1)) == "5");
}

TEST_CASE("what does not say which ranks have which value is refused") {
  std::vector<int64_t> ranks;
  CHECK_FALSE(add_named_ranks({PlainValue::Map{{"on_ranks", list({1})}}, {}}, ranks));
  CHECK_FALSE(
      add_named_ranks({PlainValue::Map{{"on_ranks", whole(1)}, {"value", whole(2)}}, {}}, ranks));
  CHECK_FALSE(add_named_ranks(
      {PlainValue::Map{{"on_ranks", list({1})}, {"value", whole(2)}, {"else", whole(3)}}, {}},
      ranks));
  CHECK(says(prepared("{FSDPStrategy: {auto_wrap_policy: {on_ranks: [4], value: [Linear]}}}"),
             "rank 4 of `on_ranks` does not exist"));
  CHECK(says(prepared("{FSDPStrategy: {auto_wrap_policy: {on_ranks: [1], value: [Conv2d]}}}"),
             "no module of this model is a Conv2d"));
  CHECK(says(prepared("ddp", "{Linear: [4, 2], frozen_on: [7]}"),
             "rank 7 of `frozen_on` does not exist"));
}

TEST_CASE("ranks with arguments of their own are each simulated") {
  CHECK(
      prepared("{FSDPStrategy: {auto_wrap_policy: {on_ranks: [1], value: [Linear]}}}").runnable());
  CHECK(prepared("ddp", "{Linear: [4, 4], frozen_on: [1]}, {Linear: [4, 2]}").runnable());
}

TEST_CASE("a strategy's `timeout` is the time limit of the process group") {
  CHECK(prepared("ddp").timeout == 30_min);
  CHECK(prepared("{DDPStrategy: {timeout: 45 min}}").timeout == 45_min);
  CHECK(prepared("{DDPStrategy: {timeout: {timedelta: {hours: 1, seconds: 30}}}}").timeout ==
        60_min + 30_s);
  CHECK(prepared("{DDPStrategy: {timeout: null}}").timeout == 10_min);
  CHECK(says(prepared("{DDPStrategy: {timeout: 45}}"), "`timeout` is not a time: 45"));
  CHECK(says(prepared("{DDPStrategy: {timeout: 45 MB}}"), "`timeout` is not a time"));
  CHECK(says(prepared("{DDPStrategy: {timeout: {timedelta: {fortnights: 1}}}}"),
             "`timeout` is not a time"));
}

}  // namespace arguments_of_ranks_test
