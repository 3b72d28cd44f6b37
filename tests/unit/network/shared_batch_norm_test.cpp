// A batch norm whose statistics ranks share, compared with one over the batches of all of them.
#include "model/network/arithmetic/shared_batch_norm.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace shared_batch_norm_test {

namespace {

constexpr double eps = 1e-5;
constexpr int64_t channels = 2;
constexpr int64_t spatial = 2;
constexpr int64_t row = channels * spatial;

Values drawn(uint64_t seed, int64_t size) {
  Values values(DType::fp64, size);
  for (int64_t i = 0; i < size; ++i) {
    values.set(i, 4 * random_unit(seed, static_cast<uint64_t>(i)) - 1.5);
  }
  return values;
}

/// Two ranks with 3 and 1 samples, and the batch of both.
struct UnequalRanks {
  BatchNormShape whole{.batch = 4, .channels = channels, .spatial = spatial};
  BatchNormShape parts[2] = {{.batch = 3, .channels = channels, .spatial = spatial},
                             {.batch = 1, .channels = channels, .spatial = spatial}};
  Values input = drawn(1, 4 * row);
  Values gradient = drawn(2, 4 * row);
  Values inputs[2] = {input.slice(0, 3 * row), input.slice(3 * row, row)};
  Values gradients[2] = {gradient.slice(0, 3 * row), gradient.slice(3 * row, row)};
  Values together{DType::fp64, 2 * channels + 1};

  UnequalRanks() {
    Values gathered(DType::fp64, 2 * together.size());
    for (int64_t rank = 0; rank < 2; ++rank) {
      Values own(DType::fp64, together.size());
      own_statistics(inputs[rank], parts[rank], eps, own);
      gathered.assign(rank * own.size(), own);
    }
    merge_statistics(gathered, channels, eps, together);
  }
};

}  // namespace

TEST_CASE("what a rank sends of a batch norm by hand") {
  // Channel 0 holds 1 and 3, channel 1 holds 10 and 30: means 2 and 20, variances 1 and 100.
  Values own(DType::fp64, 5);
  own_statistics(fp64({1, 10, 3, 30}), {.batch = 2, .channels = 2}, 0, own);
  CHECK(own == fp64({2, 20, 1, 0.1, 2}));
}

TEST_CASE("statistics of ranks with unequal batches come to those of the whole batch") {
  const UnequalRanks ranks;
  Values mean(DType::fp64, channels);
  Values variance(DType::fp64, channels);
  batch_norm_statistics(ranks.input, ranks.whole, mean, variance);
  CHECK(count_of(ranks.together) == 8);
  for (int64_t channel = 0; channel < channels; ++channel) {
    CHECK(mean_of(ranks.together).number(channel) == Approx(mean.number(channel)));
    CHECK(variance_of(ranks.together, eps).number(channel) == Approx(variance.number(channel)));
    CHECK(ranks.together.number(channels + channel) ==
          Approx(1 / std::sqrt(variance.number(channel) + eps)));
  }
}

TEST_CASE("a rank with one value still has its part of the statistics") {
  // Values 1 and 3 on two ranks: mean 2, variance 1.
  Values first(DType::fp64, 3);
  Values second(DType::fp64, 3);
  own_statistics(fp64({1}), {.batch = 1, .channels = 1}, eps, first);
  own_statistics(fp64({3}), {.batch = 1, .channels = 1}, eps, second);
  Values gathered(DType::fp64, 6);
  gathered.assign(0, first);
  gathered.assign(3, second);
  Values together(DType::fp64, 3);
  merge_statistics(gathered, 1, eps, together);
  CHECK(mean_of(together).number(0) == Approx(2));
  CHECK(variance_of(together, eps).number(0) == Approx(1));
  CHECK(count_of(together) == 2);
}

TEST_CASE("the input gradients of ranks are those of the whole batch") {
  const UnequalRanks ranks;
  const Values weight = fp64({1.5, -0.5});
  Values mean(DType::fp64, channels);
  Values variance(DType::fp64, channels);
  Values bias_gradient(DType::fp64, channels);
  Values weight_gradient(DType::fp64, channels);
  Values whole(DType::fp64, 4 * row);
  batch_norm_statistics(ranks.input, ranks.whole, mean, variance);
  batch_norm_gradient_sums(ranks.input, ranks.gradient, mean, variance, ranks.whole, eps,
                           bias_gradient, weight_gradient);
  batch_norm_input_gradient(ranks.input, ranks.gradient, mean, variance, &weight, bias_gradient,
                            weight_gradient, ranks.whole.values_per_channel(), ranks.whole, eps,
                            whole);
  Values sums(DType::fp64, 2 * channels);
  for (int64_t rank = 0; rank < 2; ++rank) {
    Values own(DType::fp64, 2 * channels);
    own_gradient_sums(ranks.inputs[rank], ranks.gradients[rank], ranks.together, ranks.parts[rank],
                      own);
    accumulate(Reduction::sum, sums, own);
  }
  int64_t element = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    Values part(DType::fp64, ranks.inputs[rank].size());
    shared_input_gradient(ranks.inputs[rank], ranks.gradients[rank], ranks.together, sums, &weight,
                          ranks.parts[rank], part);
    for (int64_t i = 0; i < part.size(); ++i, ++element) {
      CHECK(part.number(i) == Approx(whole.number(element)).margin(1e-12));
    }
  }
}

}  // namespace shared_batch_norm_test
