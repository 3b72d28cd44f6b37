// A cross entropy whose classes are divided among ranks, put together by hand and compared with the
// whole one.
#include "model/network/arithmetic/loss_part.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic/loss.hpp"

using namespace lockstep;

namespace loss_part_test {

namespace {

constexpr DType fp64 = DType::fp64;

Values numbers(std::initializer_list<double> list) {
  return Values::of(fp64, std::vector<double>(list));
}

Values classes(std::initializer_list<double> list) {
  return Values::of(DType::int64, std::vector<double>(list));
}

/// Two ranks with two of four classes each, two rows.
struct TwoRanks {
  Values scores[2] = {numbers({1, 3, 0, 0}), numbers({2, 0, 1, 5})};
  Values whole = numbers({1, 3, 2, 0, 0, 0, 1, 5});
  Values greatest = numbers({3, 5});
  Values target_scores{fp64, 2};
  Values sums{fp64, 2};

  explicit TwoRanks(const Values& targets) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      Values own_score(fp64, 2);
      Values own_sum(fp64, 2);
      loss_terms(scores[rank], targets, greatest, {2, 2 * rank, 2}, own_score, own_sum);
      accumulate(Reduction::sum, target_scores, own_score);
      accumulate(Reduction::sum, sums, own_sum);
    }
  }
};

}  // namespace

TEST_CASE("each rank finds the greatest of its scores") {
  Values greatest(fp64, 2);
  greatest_of_rows(numbers({1, 3, 0, -2}), 2, greatest);
  CHECK(greatest.number(0) == 3);
  CHECK(greatest.number(1) == 0);
}

TEST_CASE("the parts of a cross entropy come to the whole one") {
  const Values targets = classes({0, 3});
  const TwoRanks ranks(targets);
  CHECK(ranks.target_scores.number(0) == -2);  // 1 - 3, on the first rank
  CHECK(ranks.target_scores.number(1) == 0);   // 5 - 5, on the second
  CHECK(ranks.sums.number(0) == Approx(std::exp(-2) + 1 + std::exp(-1) + std::exp(-3)));
  Values loss(fp64, 1);
  loss_of_terms(ranks.target_scores, ranks.sums, targets, true, loss);
  Values whole(fp64, 1);
  cross_entropy_forward(ranks.whole, targets, 4, LossReduction::mean, whole);
  CHECK(loss.number(0) == Approx(whole.number(0)));
  Values gradient(fp64, 8);
  cross_entropy_backward(ranks.whole, targets, 4, LossReduction::mean, 0.5, gradient);
  for (int64_t rank = 0; rank < 2; ++rank) {
    Values own(fp64, 4);
    loss_part_backward({ranks.scores[rank], targets, ranks.greatest, ranks.sums}, {2, 2 * rank, 2},
                       true, 0.5, own);
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t i = 0; i < 2; ++i) {
        CHECK(own.number(2 * row + i) == Approx(gradient.number(4 * row + 2 * rank + i)));
      }
    }
  }
}

TEST_CASE("rows that are ignored count neither in the parts nor in their mean") {
  const Values targets = classes({ignored_target, 3});
  const TwoRanks ranks(targets);
  Values loss(fp64, 1);
  loss_of_terms(ranks.target_scores, ranks.sums, targets, true, loss);
  CHECK(loss.number(0) == Approx(std::log(2 * std::exp(-5) + std::exp(-4) + 1)));
  Values own(fp64, 4);
  loss_part_backward({ranks.scores[0], targets, ranks.greatest, ranks.sums}, {2, 0, 2}, true, 1,
                     own);
  CHECK(own.number(0) == 0);
  CHECK(own.number(1) == 0);
}

TEST_CASE("a target that no rank has is an error") {
  Values own_score(fp64, 1);
  Values own_sum(fp64, 1);
  CHECK_THROWS_AS(
      loss_terms(numbers({1, 2}), classes({4}), numbers({2}), {2, 0, 2}, own_score, own_sum),
      std::exception);
}

}  // namespace loss_part_test
