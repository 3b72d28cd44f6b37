// A rank that waits is not hung while another gets on.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "backend/process/other_ranks.hpp"

using namespace lockstep::backend;
using namespace std::chrono_literals;

namespace elsewhere_test {
using Clock = std::chrono::steady_clock;

namespace {

/// What several ranks of a test write on.
struct Wall {
  std::mutex mutex;
  std::map<std::string, std::vector<uint8_t>> words;
  std::atomic<bool> is_gone = false;
};

class WallBoard final : public Board {
 public:
  explicit WallBoard(Wall& wall) : wall_(wall) {}
  void post(const std::string& key, const std::vector<uint8_t>& word) override {
    const std::lock_guard lock(wall_.mutex);
    if (wall_.is_gone) {
      throw std::runtime_error("gone");
    }
    wall_.words[key] = word;
  }
  std::optional<std::vector<uint8_t>> look(const std::string& key) override {
    const std::lock_guard lock(wall_.mutex);
    if (wall_.is_gone) {
      throw std::runtime_error("gone");
    }
    const auto found = wall_.words.find(key);
    return found == wall_.words.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  Wall& wall_;
};

/// Rank 1 waits with a deadline of 200 ms while rank 0 works for `works`, then waits as well. How
/// long rank 1 waited until it gave up.
Clock::duration waited(std::chrono::milliseconds works, Wall& wall) {
  OtherRanks of_rank_0(std::make_unique<WallBoard>(wall), 0, 2);
  OtherRanks of_rank_1(std::make_unique<WallBoard>(wall), 1, 2);
  Progress progress_0;
  Progress progress_1;
  std::atomic<int64_t> never{1};
  std::thread other([&] {
    progress_0.work(1);
    std::thread ends([&] {
      std::this_thread::sleep_for(works);
      progress_0.work(-1);
    });
    progress_0.wait_for_zero(never, 200ms, &of_rank_0);
    ends.join();
  });
  const auto began = Clock::now();
  CHECK_FALSE(progress_1.wait_for_zero(never, 200ms, &of_rank_1));
  const auto passed = Clock::now() - began;
  other.join();
  return passed;
}

}  // namespace

TEST_CASE("while another rank works a wait goes on and it ends soon after") {
  Wall wall;
  const auto passed = waited(1500ms, wall);
  CHECK(passed >= 1500ms);
  CHECK(passed < 10s);
}

TEST_CASE("where no other rank works the deadline holds") {
  Wall wall;
  const auto passed = waited(0ms, wall);
  CHECK(passed >= 200ms);
  CHECK(passed < 5s);
}

TEST_CASE("where the board is gone the deadline holds") {
  Wall wall;
  wall.is_gone = true;
  CHECK(waited(1500ms, wall) < 1400ms);
}

TEST_CASE("what a rank told before the wait began does not extend it") {
  Wall wall;
  OtherRanks of_rank_0(std::make_unique<WallBoard>(wall), 0, 2);
  OtherRanks of_rank_1(std::make_unique<WallBoard>(wall), 1, 2);
  of_rank_0.tell();
  CHECK(of_rank_1.got_on());
  CHECK_FALSE(of_rank_1.got_on());
  of_rank_0.tell();
  CHECK(of_rank_1.got_on());
}

}  // namespace elsewhere_test
