#include <catch2/catch.hpp>
#include <vector>

#include "properties/diagnosis/diagnosis.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace simulated_runs_test {

namespace {

std::vector<Finding> findings_of(int32_t ranks, const ProgramOfRank& program,
                                 Bytes eager_limit = 0_B) {
  RunOptions options;
  options.world_size = ranks;
  options.journal.lists = true;
  options.eager_limit = eager_limit;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(ranks, 50_GBps, 500_ns);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return diagnose(sim::simulate(options, simulation, program));
}

CommunicationOptions at(SiteId site) {
  CommunicationOptions options;
  options.site = site;
  return options;
}

constexpr SiteId first_site = site_id("first");
constexpr SiteId second_site = site_id("second");
constexpr SiteId guard_site = site_id("guard");
const Slice four_bytes = Slice::of_size(DType::fp32, 1);

Program guarded_barrier(Rank& rank) {
  const uint32_t taken = rank.choose(guard_site, ChoiceKind::branch, 2, rank.id() == 0 ? 1 : 0);
  if (taken != 0) {
    co_await rank.settle(rank.barrier(world_group, at(first_site)));
  }
}

Program send_then_receive(Rank& rank) {
  const int32_t peer = 1 - rank.id();
  rank.send(world_group, four_bytes, peer, 0, at(first_site));
  co_await rank.settle(rank.receive(world_group, four_bytes, peer, 0, at(second_site)));
}

Program grouped_exchange(Rank& rank) {
  const int32_t peer = 1 - rank.id();
  const Ticket ticket = GroupedCall(rank, at(first_site))
                            .send(world_group, four_bytes, peer)
                            .receive(world_group, four_bytes, peer)
                            .submit();
  co_await rank.settle(ticket);
}

Program crossed_groups(Rank& rank) {
  const std::vector<int64_t> members = {0, 1};
  const Rank::NewGroup a = rank.new_group(world_group, members);
  co_await rank.settle(a.ready);
  const Rank::NewGroup b = rank.new_group(world_group, members);
  co_await rank.settle(b.ready);
  const GroupId first = rank.id() == 0 ? a.group : b.group;
  const GroupId second = rank.id() == 0 ? b.group : a.group;
  co_await rank.settle(rank.all_reduce(first, four_bytes, Reduction::sum, at(first_site)));
  co_await rank.settle(rank.all_reduce(second, four_bytes, Reduction::sum, at(second_site)));
}

Program one_rank_raises(Rank& rank) {
  co_await rank.settle(rank.barrier(world_group, at(first_site)));
  if (rank.id() == 2) {
    throw ProgramException(second_site, "no such file");
  }
  co_await rank.settle(rank.all_reduce(world_group, four_bytes, Reduction::sum, at(first_site)));
}

// Each gradient is reduced while the next is computed; `waits`: whether the update waits for it.
Program overlapped_steps(Rank& rank, bool waits) {
  constexpr int layers = 3;
  std::vector<Slice> gradients;
  for (int layer = 0; layer < layers; ++layer) {
    gradients.push_back(rank.allocate(Purpose::gradient, DType::fp32, 64));
  }
  for (int step = 0; step < 3; ++step) {
    std::vector<Ticket> reduced;
    for (const Slice& gradient : gradients) {
      KernelCall backward;
      backward.kernel = Kernel::fill;
      const double zero = 0;
      backward.writes = {&gradient, 1};
      backward.scalars = {&zero, 1};
      const Ticket computed = rank.compute(backward);
      CommunicationOptions after_backward = at(first_site);
      after_backward.after = {computed};
      reduced.push_back(rank.all_reduce(world_group, gradient, Reduction::avg, after_backward));
    }
    if (waits) {
      co_await rank.settle_all(reduced);
    }
    for (const Slice& gradient : gradients) {
      KernelCall update;
      update.kernel = Kernel::scale;
      const double half = 0.5;
      update.writes = {&gradient, 1};
      update.reads = {&gradient, 1};
      update.scalars = {&half, 1};
      ComputeOptions options;
      options.site = second_site;
      rank.compute(update, options);
    }
    co_await rank.settle(rank.event());
  }
}

}  // namespace

TEST_CASE("simulated: a guarded barrier is one LS101") {
  const auto findings = findings_of(4, guarded_barrier);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].site() == first_site);
  CHECK(findings[0].why.site == guard_site);
  CHECK(findings[0].ranks == RankSet({1, 2, 3}));
}

TEST_CASE("simulated: sends before receives hang without buffering and are warned of with it") {
  const auto hung = findings_of(2, send_then_receive);
  REQUIRE(hung.size() == 1);
  CHECK(hung[0].code == "LS108");
  CHECK(hung[0].level == Level::error);
  const auto buffered = findings_of(2, send_then_receive, 1_KiB);
  REQUIRE(buffered.size() == 1);
  CHECK(buffered[0].code == "LS108");
  CHECK(buffered[0].level == Level::warning);
  CHECK(findings_of(2, grouped_exchange).empty());
}

TEST_CASE("simulated: two groups in opposite order are one LS106") {
  const auto findings = findings_of(2, crossed_groups);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS106");
  CHECK(findings[0].ranks == RankSet({0, 1}));
}

TEST_CASE("simulated: an exception on one rank is one LS101") {
  const auto findings = findings_of(4, one_rank_raises);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS101");
  CHECK(findings[0].title ==
        "ranks 0-1, 3 wait forever in all_reduce: rank 2 raised 'no such file'");
}

TEST_CASE("simulated: overlapped reductions are clean, without the wait they are LS201") {
  CHECK(findings_of(2, [](Rank& rank) { return overlapped_steps(rank, true); }).empty());
  const auto findings = findings_of(2, [](Rank& rank) { return overlapped_steps(rank, false); });
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].code == "LS201");
  CHECK(findings[0].site() == second_site);
}

}  // namespace simulated_runs_test
