// Queues of parts that have found no partner.
#include "sim/channels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <vector>

namespace channels_test {

using namespace lockstep;
using namespace lockstep::sim;

TEST_CASE("a queue of parts gives them in the order in which they came") {
  PartQueue queue;
  std::deque<uint32_t> expected;
  uint64_t drawn = 0;
  size_t longest = 0;
  for (uint32_t part = 0; part < 4'000; ++part) {
    // Longer and shorter again, so that what was taken lies in front of what is still there.
    const uint64_t kind = random_key(drawn++, 7) % 8;
    const bool grows = part / 500 % 2 == 0;
    if (kind < (grows ? 6u : 2u) || expected.empty()) {
      queue.push_back(part);
      expected.push_back(part);
    } else if (kind < 7) {
      CHECK(queue.front() == expected.front());
      queue.pop_front();
      expected.pop_front();
    } else {
      const auto taken =
          expected.begin() + static_cast<std::ptrdiff_t>(random_key(drawn++, 8) % expected.size());
      queue.erase(*taken);
      expected.erase(taken);
    }
    longest = std::max(longest, expected.size());
    REQUIRE(queue.empty() == expected.empty());
    const auto parts = queue.parts();
    REQUIRE(std::ranges::equal(parts, expected));
  }
  CHECK(longest > 100);
}

TEST_CASE("channels of different pairs and tags are apart, however many there are") {
  Channels channels;
  constexpr int32_t ranks = 64;  // more pairs than are remembered as recent
  for (int32_t source = 0; source < ranks; ++source) {
    for (int32_t destination = 0; destination < ranks; ++destination) {
      channels.of(0, source, destination, 3)
          .sends.push_back(static_cast<uint32_t>(source * ranks + destination));
    }
  }
  CHECK(channels.of(0, 5, 6, 4).sends.empty());
  CHECK(channels.of(1, 5, 6, 3).sends.empty());
  for (int32_t source = 0; source < ranks; ++source) {
    for (int32_t destination = 0; destination < ranks; ++destination) {
      const PartQueue& sends = channels.of(0, source, destination, 3).sends;
      REQUIRE(sends.parts().size() == 1);
      CHECK(sends.front() == static_cast<uint32_t>(source * ranks + destination));
    }
  }
}

}  // namespace channels_test
