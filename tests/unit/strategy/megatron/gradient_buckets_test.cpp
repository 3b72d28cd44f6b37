// Megatron-LM's buffers of gradients: which parameters share a bucket, and where each lies.
#include "model/strategy/megatron/gradient_buckets.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace gradient_buckets_test {

namespace {

/// Four parameters of 100, 300, 50 and 200 elements, in definition order.
std::vector<BufferedParameter> parameters() { return {{0, 100}, {1, 300}, {2, 50}, {3, 200}}; }

}  // namespace

TEST_CASE("a buffer has the last parameter first, in one bucket without padding") {
  const GradientBuffer buffer = megatron_buffer(parameters(), {});
  REQUIRE(buffer.buckets.size() == 1U);
  CHECK(buffer.elements == 650);
  const std::vector<BufferedPart>& parts = buffer.buckets.front().parts;
  REQUIRE(parts.size() == 4U);
  CHECK(parts[0].parameter == 3U);
  CHECK(parts[0].begin == 0);
  CHECK(parts[1].parameter == 2U);
  CHECK(parts[1].begin == 200);
  CHECK(parts[3].parameter == 0U);
  CHECK(parts[3].begin == 550);
}

TEST_CASE("a bucket closes with the parameter that fills it") {
  const GradientBuffer buffer = megatron_buffer(parameters(), {.bucket_elements = 250});
  REQUIRE(buffer.buckets.size() == 3U);
  CHECK(buffer.buckets[0].begin == 0);
  CHECK(buffer.buckets[0].end == 250);  // 200 + 50
  CHECK(buffer.buckets[1].end == 550);  // 300 alone is enough
  CHECK(buffer.buckets[2].end == 650);
}

// Parameters begin at multiples of 64, buckets end at multiples of lcm(shards, 128): for 3 shards
// 384. Backwards 200 at 0, 50 at 256, 300 at 320, 100 at 640: 740, padded to 768.
TEST_CASE("a distributed optimizer pads parameters and buckets") {
  const GradientBuffer buffer = megatron_buffer(parameters(), {.shards = 3});
  REQUIRE(buffer.buckets.size() == 1U);
  const std::vector<BufferedPart>& parts = buffer.buckets.front().parts;
  CHECK(parts[1].begin == 256);
  CHECK(parts[2].begin == 320);
  CHECK(parts[3].begin == 640);
  CHECK(buffer.elements == 768);
}

TEST_CASE("a weight that two stages share has a bucket of its own where optimizers are divided") {
  std::vector<BufferedParameter> shared = parameters();
  shared[1].is_shared = true;
  CHECK(megatron_buffer(shared, {}).buckets.size() == 1U);
  const GradientBuffer buffer = megatron_buffer(shared, {.shards = 2});
  REQUIRE(buffer.buckets.size() == 3U);
  REQUIRE(buffer.buckets[1].parts.size() == 1U);
  CHECK(buffer.buckets[1].parts.front().parameter == 1U);
  CHECK(buffer.buckets[1].begin == 384);  // 200, 50 at 256: 306, to 320, to 384
  CHECK(buffer.buckets[1].elements() == 384);
}

}  // namespace gradient_buckets_test
