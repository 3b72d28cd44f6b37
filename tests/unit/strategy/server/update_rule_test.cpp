// Which gradients make an update, and who gets the weights: section by section what the modes of
// parameter servers are defined by.
#include "model/strategy/server/update_rule.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace update_rule_test {

namespace {

using Workers = std::vector<int32_t>;

ServerOptions mode(ServerMode mode) {
  ServerOptions options;
  options.mode = mode;
  return options;
}

ServerOptions batched(int64_t batch, bool drop_late = false) {
  ServerOptions options = mode(ServerMode::batched);
  options.batch = batch;
  options.drop_late = drop_late;
  return options;
}

UpdateRule pulled_by_all(const ServerOptions& options, int32_t workers) {
  UpdateRule rule(options, workers);
  for (int32_t worker = 0; worker < workers; ++worker) {
    CHECK(rule.pulled(worker).answered == Workers{worker});
  }
  return rule;
}

}  // namespace

TEST_CASE("a synchronous server updates once all workers have pushed, and then answers all") {
  UpdateRule rule = pulled_by_all(mode(ServerMode::sync), 3);
  CHECK(rule.pushed(2).answered.empty());
  CHECK(rule.awaited() == Workers{0, 1});
  CHECK(rule.pushed(0).averaged == 0);
  const UpdateRule::Decision last = rule.pushed(1);
  CHECK(last.averaged == 3);
  CHECK(last.answered == Workers{0, 1, 2});
  CHECK(rule.updates() == 1);
  CHECK(rule.staleness() == Staleness{3, 0, 0, 0});
}

// The first push of each comes after 0, 1, .. W - 1 updates, each later one after the W - 1 of the
// others: the mean over N pushes each is (W - 1) / 2 / N + (W - 1) (N - 1) / N.
TEST_CASE("equal workers of an asynchronous server push gradients of W - 1 updates ago") {
  constexpr int32_t workers = 4;
  constexpr int64_t pushes = 5;
  UpdateRule rule = pulled_by_all(mode(ServerMode::async), workers);
  for (int64_t push = 0; push < pushes; ++push) {
    for (int32_t worker = 0; worker < workers; ++worker) {
      const UpdateRule::Decision decision = rule.pushed(worker);
      CHECK(decision.averaged == 1);
      CHECK(decision.answered == Workers{worker});
    }
  }
  CHECK(rule.updates() == workers * pushes);
  CHECK(rule.staleness().pushes == workers * pushes);
  CHECK(rule.staleness().mean() == Approx(3.0 / 2 / 5 + 3.0 * 4 / 5));
  CHECK(rule.staleness().most == workers - 1);
}

TEST_CASE(
    "a server of K answers the K that pushed, and counts a late gradient in the next update") {
  UpdateRule rule = pulled_by_all(batched(2), 3);
  CHECK(rule.pushed(0).averaged == 0);
  const UpdateRule::Decision first = rule.pushed(1);
  CHECK(first.averaged == 2);
  CHECK(first.answered == Workers{0, 1});
  CHECK(rule.pushed(2).averaged == 0);  // of the weights before that update
  CHECK(rule.staleness() == Staleness{3, 1, 1, 0});
  CHECK(rule.awaited() == Workers{0, 1});
  const UpdateRule::Decision second = rule.pushed(0);
  CHECK(second.averaged == 2);
  CHECK(second.answered == Workers{0, 2});
}

TEST_CASE("with backup workers a late gradient is dropped, and its worker goes on at once") {
  UpdateRule rule = pulled_by_all(batched(2, true), 3);
  rule.pushed(0);
  rule.pushed(1);
  const UpdateRule::Decision late = rule.pushed(2);
  CHECK_FALSE(late.keeps);
  CHECK(late.averaged == 0);
  CHECK(late.answered == Workers{2});
  CHECK(rule.staleness() == Staleness{3, 1, 1, 1});
  const UpdateRule::Decision in_time = rule.pushed(2);
  CHECK(in_time.keeps);
  CHECK(rule.gathered() == 1);
}

TEST_CASE("under ssp a worker waits while it is more than s steps ahead of the slowest") {
  ServerOptions options = mode(ServerMode::ssp);
  options.max_staleness = 1;
  UpdateRule rule = pulled_by_all(options, 2);
  CHECK(rule.pushed(0).answered == Workers{0});  // one ahead
  const UpdateRule::Decision ahead = rule.pushed(0);
  CHECK(ahead.averaged == 1);  // applied, and not answered
  CHECK(ahead.answered.empty());
  CHECK(rule.awaited() == Workers{1});
  CHECK(rule.pushed(1).answered == Workers{0, 1});
  CHECK(rule.staleness().most == 2);  // worker 1 had weights from before two updates
}

TEST_CASE("what a worker that ended leaves behind is answered, unless it is still waited for") {
  UpdateRule rule = pulled_by_all(mode(ServerMode::sync), 2);
  rule.pushed(1);
  const UpdateRule::Decision left = rule.ended(0);
  CHECK(left.averaged == 1);
  CHECK(left.answered == Workers{1});
  rule.ended(1);
  CHECK(rule.all_have_ended());
  CHECK(rule.awaited().empty());

  ServerOptions awaits = mode(ServerMode::sync);
  awaits.join = false;
  UpdateRule stuck = pulled_by_all(awaits, 2);
  stuck.pushed(1);
  CHECK(stuck.ended(0).averaged == 0);
  CHECK(stuck.awaited() == Workers{0});  // which says nothing any more
}

TEST_CASE("the end of the slowest worker frees those that ssp holds back") {
  ServerOptions options = mode(ServerMode::ssp);
  UpdateRule rule = pulled_by_all(options, 3);
  rule.pushed(0);
  CHECK(rule.pushed(1).answered.empty());
  CHECK(rule.ended(2).answered == Workers{0, 1});
}

// Two servers and three workers, of which two make an update. Both have updated by worker 0, one
// with worker 1 and the other with worker 2; then worker 0 ends. Worker 1 is answered by the first
// and waits for the second, which waits for worker 2, which waits for the first.
TEST_CASE("servers that take the first workers in other orders can each hold one in the end") {
  UpdateRule first = pulled_by_all(batched(2), 3);
  UpdateRule second = pulled_by_all(batched(2), 3);
  first.pushed(0);
  CHECK(first.pushed(1).answered == Workers{0, 1});
  second.pushed(0);
  CHECK(second.pushed(2).answered == Workers{0, 2});
  CHECK(first.pushed(2).answered.empty());
  CHECK(second.pushed(1).answered.empty());
  CHECK(first.ended(0).answered.empty());
  CHECK(second.ended(0).answered.empty());
  CHECK(first.awaited() == Workers{1});
  CHECK(second.awaited() == Workers{2});
}

}  // namespace update_rule_test
