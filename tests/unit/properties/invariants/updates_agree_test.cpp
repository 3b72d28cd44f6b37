#include "properties/invariants/updates_agree.hpp"

#include <catch2/catch.hpp>

#include "model/trainer/logging/run_log.hpp"

using namespace lockstep;

namespace updates_agree_test {

namespace {

constexpr SiteId step_site{7};
constexpr SiteId clip_site{8};

WeightUpdate step(int64_t times = 1) {
  WeightUpdate update;
  update.learning_rate = 0.1;
  update.has_gradients = true;
  update.site = step_site;
  update.times = times;
  return update;
}

WeightUpdate clipped(double limit, int64_t times = 1) {
  WeightUpdate update = step(times);
  update.clipping = {GradientClipping::Algorithm::norm, limit};
  update.clipping_site = clip_site;
  return update;
}

using Updates = std::vector<WeightUpdate>;

std::vector<Finding> judged(const std::vector<Updates>& all) {
  std::vector<RankUpdates> ranks;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ranks.push_back({static_cast<int32_t>(rank), all[rank]});
  }
  return updates_agree(ranks);
}

}  // namespace

TEST_CASE("ranks that take the same steps agree however they are listed") {
  CHECK(judged({{step(3)}, {step(3)}}).empty());
  CHECK(judged({{step(3)}, {step(), step(2)}}).empty());
  // The same step by another statement, as in the branches of an `if`.
  WeightUpdate elsewhere = step();
  elsewhere.site = SiteId{9};
  CHECK(judged({{step(2)}, {elsewhere, step()}}).empty());
  CHECK(judged({{}, {}}).empty());
  CHECK(judged({}).empty());
}

TEST_CASE("a step that only some ranks take is LS305 at its statement") {
  const std::vector<Finding> findings = judged({{step(4)}, {}, {}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS305");
  CHECK(findings[0].level == Level::error);
  CHECK(findings[0].title == "ranks 1-2 do not update the weights as rank 0 does");
  CHECK(findings[0].site() == step_site);
  CHECK(findings[0].why.text == "optimizer step 1 differs");
}

TEST_CASE("a clipping that only some ranks reach is LS305 at the clipping") {
  const std::vector<Finding> findings =
      judged({{step(2), clipped(1), step()}, {step(2), step(), step()}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title == "rank 1 does not update the weights as rank 0 does");
  CHECK(findings[0].site() == clip_site);
  CHECK(findings[0].why.text == "optimizer step 3 differs");
  CHECK(judged({{clipped(1)}, {clipped(1)}}).empty());
  CHECK(judged({{clipped(1)}, {clipped(2)}}).size() == 1);
}

TEST_CASE("a step that one rank leaves out is reported at its batch, not at the end") {
  WeightUpdate each = step(4);
  each.batches = 1;
  WeightUpdate first = step(1);
  first.batches = 1;
  WeightUpdate later = step(1);
  later.batches = 2;  // the batch between took no step
  WeightUpdate rest = step(1);
  rest.batches = 1;
  const std::vector<Finding> findings = judged({{each}, {first, later, rest}, {each}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == RankSet({1}));
  CHECK(findings[0].why.text == "optimizer step 2 differs, in training batch 2 of the run");
  REQUIRE(findings[0].why.ways.size() == 2);
  CHECK(findings[0].why.ways[0].value == "no optimizer_step");
  CHECK(findings[0].why.ways[0].ranks == RankSet({1}));
  // As many steps as the others, but from other batches.
  WeightUpdate late = each;
  late.times = 3;
  CHECK(judged({{first, later, first}, {late}}).size() == 1);
  CHECK(judged({{first, later, first}, {first, later, rest}}).empty());
}

TEST_CASE("shards that were not updated alike are parts of one model") {
  std::vector<RankUpdates> ranks;
  const Updates taken{step(2)};
  const Updates missed{step(1)};
  ranks.push_back({0, taken});
  ranks.push_back({1, missed});
  const std::vector<Finding> findings = updates_agree(ranks, Holding::part);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].title == "rank 1 does not update its part of the weights as rank 0 does");
}

TEST_CASE("another learning rate, or gradients set to None on one rank, are other steps") {
  WeightUpdate slower = step();
  slower.learning_rate = 0.05;
  CHECK(judged({{step()}, {slower}}).size() == 1);
  WeightUpdate without = step();
  without.has_gradients = false;
  CHECK(judged({{step()}, {without}}).size() == 1);
}

TEST_CASE("after torch's Join all ranks hold one model, however many steps each of them made") {
  WeightUpdate taken_over;
  taken_over.takes_over = true;
  const Updates longer{step(11), taken_over};
  const Updates shorter{step(10), taken_over};
  CHECK(judged({longer, shorter}).empty());
  // The next epoch begins with one model: a step that one rank leaves out there counts again.
  CHECK(judged({{step(11), taken_over, step(11), taken_over},
                {step(10), taken_over, step(10), taken_over}})
            .empty());
  const std::vector<Finding> findings =
      judged({{step(11), taken_over, step(2)}, {step(10), taken_over, step(1)}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].why.text == "optimizer step 13 differs");
  CHECK(judged({longer, shorter, {step(10)}}).size() == 1);  // this one has not joined
}

TEST_CASE("nothing is said about updates that did not fit into the log of a rank") {
  Updates all;
  while (all.size() < RankLog::weight_updates_max) {
    all.push_back(clipped(static_cast<double>(all.size() + 1)));
  }
  Updates fewer(all.begin(), all.end() - 1);
  CHECK(judged({all, fewer}).size() == 1);
  Updates merged = all;
  merged.back().times = 2;  // the log had room for this one, as it is the same again
  CHECK(judged({all, merged}).empty());
}

}  // namespace updates_agree_test
