#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "model/trainer/data/data_loader.hpp"

using namespace lockstep;

namespace sampler_test {

namespace {

using Ranks = std::vector<std::vector<int64_t>>;

std::vector<int64_t> all_of(const Sampler& sampler) {
  std::vector<int64_t> samples;
  for (int64_t k = 0; k < sampler.size(); ++k) {
    samples.push_back(sampler.at(k));
  }
  return samples;
}

Ranks ranks_of(Sampler::Options options) {
  Ranks ranks;
  for (options.index = 0; options.index < options.replicas; ++options.index) {
    ranks.push_back(all_of(Sampler(options)));
  }
  return ranks;
}

Sampler::Options distributed(int64_t samples, int64_t replicas) {
  Sampler::Options options;
  options.samples = samples;
  options.replicas = replicas;
  return options;
}

}  // namespace

// torch.utils.data.DistributedSampler(range(N), W, shuffle=False).
TEST_CASE("a distributed sampler strides and repeats the first samples as padding") {
  CHECK(ranks_of(distributed(10, 4)) == Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}});
  CHECK(ranks_of(distributed(3, 8)) == Ranks{{0}, {1}, {2}, {0}, {1}, {2}, {0}, {1}});
  Sampler::Options dropping = distributed(10, 4);
  dropping.drop_last = true;
  CHECK(ranks_of(dropping) == Ranks{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("an unrepeated sampler pads nothing") {
  Sampler::Options options = distributed(10, 4);
  options.division = Sampler::Division::unrepeated;
  CHECK(ranks_of(options) == Ranks{{0, 4, 8}, {1, 5, 9}, {2, 6}, {3, 7}});
}

TEST_CASE("a shuffled epoch is a permutation, another one each epoch") {
  for (const int64_t samples : {1, 2, 3, 7, 64, 1000}) {
    Sampler::Options options = distributed(samples, 1);
    options.shuffle = true;
    std::vector<int64_t> drawn = all_of(Sampler(options));
    options.epoch = 1;
    const std::vector<int64_t> next = all_of(Sampler(options));
    CHECK((samples < 64 || drawn != next));
    std::sort(drawn.begin(), drawn.end());
    for (int64_t i = 0; i < samples; ++i) {
      CHECK(drawn[static_cast<size_t>(i)] == i);
    }
  }
}

TEST_CASE("step t of W ranks is what one device with W times the batch reads") {
  LoaderSettings settings;
  settings.samples = 64;
  settings.batch_size = 4;
  SamplerPolicy one{LoaderRole::train, true, true, 1, 0, 7};
  LoaderSettings large = settings;
  large.batch_size = 16;
  const RankBatches whole(large, one, 3, {});
  for (int64_t step = 0; step < 4; ++step) {
    std::vector<int64_t> together;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const SamplerPolicy policy{LoaderRole::train, true, true, 4, rank, 7};
      const Batch batch = RankBatches(settings, policy, 3, {}).at(step);
      together.insert(together.end(), batch.samples.begin(), batch.samples.end());
    }
    std::vector<int64_t> expected = whole.at(step).samples;
    std::sort(together.begin(), together.end());
    std::sort(expected.begin(), expected.end());
    CHECK(together == expected);
  }
}

TEST_CASE("Lightning shuffles training data whatever the loader says, and evaluation as it says") {
  LoaderSettings settings;
  settings.samples = 8;
  SamplerPolicy policy{LoaderRole::train, true, true, 2, 1, 0};
  CHECK(sampler_options(settings, policy, 0).shuffle);
  CHECK(sampler_options(settings, policy, 0).division == Sampler::Division::distributed);
  policy.role = LoaderRole::evaluate;
  CHECK_FALSE(sampler_options(settings, policy, 0).shuffle);
  settings.shuffle = true;
  CHECK(sampler_options(settings, policy, 0).shuffle);
  policy.role = LoaderRole::predict;
  CHECK(sampler_options(settings, policy, 0).division == Sampler::Division::unrepeated);
  CHECK_FALSE(sampler_options(settings, policy, 0).shuffle);
  policy.inject = false;
  CHECK(sampler_options(settings, policy, 0).division == Sampler::Division::whole);
  policy.inject = true;
  settings.iterable = true;
  CHECK(sampler_options(settings, policy, 0).division == Sampler::Division::whole);
}

TEST_CASE("overfitting keeps the samplers that Lightning inserts from shuffling") {
  LoaderSettings settings;
  settings.samples = 8;
  settings.in_order = true;
  SamplerPolicy policy{LoaderRole::train, true, true, 2, 1, 0};
  CHECK_FALSE(sampler_options(settings, policy, 0).shuffle);
  CHECK(sampler_options(settings, policy, 0).division == Sampler::Division::distributed);
  policy.role = LoaderRole::evaluate;
  settings.shuffle = true;  // shuffle and not overfit_batches
  CHECK_FALSE(sampler_options(settings, policy, 0).shuffle);
}

TEST_CASE("forgetting set_epoch repeats the order of epoch 0") {
  LoaderSettings settings;
  settings.samples = 100;
  const SamplerPolicy policy{LoaderRole::train, true, true, 2, 0, 0};
  settings.set_epoch = false;
  CHECK(RankBatches(settings, policy, 5, {}).at(0).samples ==
        RankBatches(settings, policy, 0, {}).at(0).samples);
  settings.set_epoch = true;
  CHECK(RankBatches(settings, policy, 5, {}).at(0).samples !=
        RankBatches(settings, policy, 0, {}).at(0).samples);
}

TEST_CASE("iterable data are whole on every rank, or shard themselves") {
  LoaderSettings settings;
  settings.samples = 5;
  settings.iterable = true;
  SamplerPolicy policy;
  policy.distributed = true;
  policy.replicas = 2;
  policy.index = 1;
  CHECK(all_of(Sampler(sampler_options(settings, policy, 0))) ==
        std::vector<int64_t>{0, 1, 2, 3, 4});
  settings.sampler = SamplerKind::unrepeated;
  CHECK(all_of(Sampler(sampler_options(settings, policy, 0))) == std::vector<int64_t>{1, 3});
  policy.index = 0;
  CHECK(all_of(Sampler(sampler_options(settings, policy, 0))) == std::vector<int64_t>{0, 2, 4});
}

}  // namespace sampler_test
