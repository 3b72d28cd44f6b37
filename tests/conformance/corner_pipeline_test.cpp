// Corner programs of pipelines and groups, in both worlds.
#include <array>

#include "properties/diagnosis/diagnosis.hpp"
#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace corner_pipeline_test {

namespace {

constexpr int32_t micro_batches = 4;

// How a stage makes a send and a receive that match.
enum class Exchange { one_by_one, grouped };

Program exchange(Rank& rank, Exchange how, Slice sent, Slice received, int32_t peer) {
  if (how == Exchange::grouped) {
    GroupedCall call(rank);
    call.send(world_group, sent, peer).receive(world_group, received, peer);
    const Ticket both = call.submit();
    co_await rank.settle(both);
  } else {
    const Ticket out = rank.send(world_group, sent, peer);
    const Ticket in = rank.receive(world_group, received, peer);
    const Ticket both[] = {out, in};
    co_await rank.settle_all(both);
  }
}

// 1F1B on two stages with one stream for messages (PipeDream-Flush; Narayanan et al. 2021).
Program first_stage(Rank& rank, Exchange how, Seen& seen) {
  const Slice activation = metric(rank, DType::fp32, {10});
  const Slice gradient = metric(rank, DType::fp32, {0});
  const Ticket first = rank.send(world_group, activation, 1);
  co_await rank.settle(first);
  for (int32_t next = 1; next < micro_batches; ++next) {
    rank.write(activation, Values::of(DType::fp32, {10.0 + next}));
    co_await exchange(rank, how, activation, gradient, 1);
    seen.push_back(rank.read(gradient));
  }
  const Ticket last = rank.receive(world_group, gradient, 1);
  co_await rank.settle(last);
  seen.push_back(rank.read(gradient));
}

Program last_stage(Rank& rank, Exchange how, Seen& seen) {
  const Slice activation = metric(rank, DType::fp32, {0});
  const Slice gradient = metric(rank, DType::fp32, {0});
  const Ticket first = rank.receive(world_group, activation, 0);
  co_await rank.settle(first);
  for (int32_t current = 0; current < micro_batches; ++current) {
    seen.push_back(rank.read(activation));
    const Ticket backward = apply(rank, Kernel::scale, activation, gradient, 2);
    co_await rank.settle(backward);
    if (current + 1 < micro_batches) {
      co_await exchange(rank, how, gradient, activation, 0);
    }
  }
  const Ticket last = rank.send(world_group, gradient, 0);
  co_await rank.settle(last);
}

Program pipeline(Rank& rank, Exchange how, Seen& seen) {
  return rank.id() == 0 ? first_stage(rank, how, seen) : last_stage(rank, how, seen);
}

Arm run_pipeline(Worlds& worlds, Exchange how, Bytes eager_limit = {}) {
  RunOptions options = world_of(2);
  options.eager_limit = eager_limit;
  return run_both(worlds, options,
                  [how](Rank& rank, Seen& seen) { return pipeline(rank, how, seen); });
}

// Rank 0 is held up before its part of the ring: what the others exchange among themselves arrives,
// but their grouped calls do not end.
Program ring_behind_a_missing_call(Rank& rank, Seen& seen) {
  const Slice sent = metric(rank, DType::fp32, {rank.id() * 1.0});
  const Slice received = metric(rank, DType::fp32, {-1});
  if (rank.id() == 0) {
    rank.barrier(world_group);
  }
  const int32_t world = rank.world_size();
  GroupedCall call(rank);
  call.send(world_group, sent, (rank.id() + 1) % world)
      .receive(world_group, received, (rank.id() + world - 1) % world);
  const Ticket exchanged = call.submit();
  co_await rank.settle(exchanged);
  seen.push_back(rank.read(received));
}

Program sum_in(Rank& rank, GroupId group, Seen& seen) {
  const Slice value = metric(rank, DType::int64, {rank.id() + 1.0});
  const Ticket summed = rank.all_reduce(group, value, Reduction::sum);
  co_await rank.settle(summed);
  seen.push_back(rank.read(value));
}

// Rows and columns by list, as torch makes them: every rank makes every group.
Program groups_by_list(Rank& rank, Seen& seen) {
  const std::array<std::array<int64_t, 2>, 4> lists{{{0, 1}, {2, 3}, {0, 2}, {1, 3}}};
  for (const auto& members : lists) {
    const Rank::NewGroup made = rank.new_group(world_group, members);
    co_await rank.settle(made.ready);
    if (rank.id() == members[0] || rank.id() == members[1]) {
      co_await sum_in(rank, made.group, seen);
    }
  }
}

// Halves by colour; within each half a group in reverse order, made by its members alone.
Program nested_groups(Rank& rank, Seen& seen) {
  const Rank::NewGroup half = rank.split_group(world_group, rank.id() / 2);
  co_await rank.settle(half.ready);
  const int64_t first = rank.id() / 2 * 2;
  const int64_t members[] = {first + 1, first};
  const Rank::NewGroup reversed = rank.new_group(half.group, members);
  co_await rank.settle(reversed.ready);
  const Slice own = metric(rank, DType::int32, {rank.id() * 1.0});
  const Slice all = metric(rank, DType::int32, {-1, -1});
  const Ticket gathered = rank.all_gather(reversed.group, own, all);
  co_await rank.settle(gathered);
  seen.push_back(rank.read(all));
}

Program without_color(Rank& rank, Seen& seen) {
  const Rank::NewGroup made = rank.split_group(world_group, rank.id() == 1 ? no_color : 7);
  co_await rank.settle(made.ready);
  if (rank.id() != 1) {
    co_await sum_in(rank, made.group, seen);
  }
}

Program group_on_one_rank(Rank& rank, Seen&) {
  if (rank.id() == 0) {
    const int64_t members[] = {0};
    const Rank::NewGroup made = rank.new_group(world_group, members);
    co_await rank.settle(made.ready);
  }
}

Program group_of_others(Rank& rank, Seen& seen) {
  const int64_t members[] = {0, 1};
  const Rank::NewGroup made = rank.new_group(world_group, members);
  co_await rank.settle(made.ready);
  co_await sum_in(rank, made.group, seen);
}

Program different_members(Rank& rank, Seen& seen) {
  const int64_t of_rank_0[] = {0, 1};
  const int64_t of_others[] = {1, 2};
  const Rank::NewGroup made = rank.new_group(world_group, rank.id() == 0 ? of_rank_0 : of_others);
  co_await rank.settle(made.ready);
  co_await sum_in(rank, made.group, seen);
}

}  // namespace

TEST_CASE("1F1B hangs where sends wait for their receives, and ends when each pair is grouped") {
  Worlds worlds;
  CHECK(unfinished(run_pipeline(worlds, Exchange::one_by_one)) == std::vector<int32_t>{0, 1});
  const Arm grouped = run_pipeline(worlds, Exchange::grouped);
  CHECK(unfinished(grouped).empty());
  CHECK(numbers_of(grouped.seen[0]) == Numbers{20, 22, 24, 26});
  CHECK(numbers_of(grouped.seen[1]) == Numbers{10, 11, 12, 13});
}

TEST_CASE("1F1B one by one ends where sends leave before they are received") {
  Worlds worlds;
  const Arm eager = run_pipeline(worlds, Exchange::one_by_one, Bytes(4));
  CHECK(unfinished(eager).empty());
  CHECK(numbers_of(eager.seen[0]) == Numbers{20, 22, 24, 26});
  CHECK(unfinished(run_pipeline(worlds, Exchange::one_by_one, Bytes(3))).size() == 2);
}

TEST_CASE("a grouped call with one part that never comes does not end, whatever the others did") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(3), ring_behind_a_missing_call);
  CHECK(unfinished(arm) == std::vector<int32_t>{0, 1, 2});
  const std::vector<Finding> findings = diagnose(arm.result);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks.contains(0));
}

TEST_CASE("groups by list, by colour and within groups carry their own collectives") {
  Worlds worlds;
  const Arm grid = run_both(worlds, world_of(4), groups_by_list);
  CHECK(unfinished(grid).empty());
  CHECK(numbers_of(grid.seen[0]) == Numbers{3, 4});  // 1 + 2 in the row, 1 + 3 in the column
  CHECK(numbers_of(grid.seen[3]) == Numbers{7, 6});
  const Arm nested = run_both(worlds, world_of(4), nested_groups);
  CHECK(unfinished(nested).empty());
  CHECK(numbers_of(nested.seen[0]) == Numbers{1, 0});
  CHECK(numbers_of(nested.seen[3]) == Numbers{3, 2});
  const Arm without = run_both(worlds, world_of(3), without_color);
  CHECK(unfinished(without).empty());
  CHECK(numbers_of(without.seen[2]) == Numbers{4});
}

TEST_CASE("a group that one rank alone makes never comes to be") {
  Worlds worlds;
  CHECK(unfinished(run_both(worlds, world_of(3), group_on_one_rank)) == std::vector<int32_t>{0});
}

TEST_CASE("a rank that is no member of a group waits forever in it, the members do not") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(3), group_of_others);
  CHECK(unfinished(arm) == std::vector<int32_t>{2});
  CHECK(numbers_of(arm.seen[1]) == Numbers{3});
}

TEST_CASE("ranks that name other members make groups that do not meet") {
  Worlds worlds;
  CHECK(unfinished(run_both(worlds, world_of(3), different_members)) == std::vector<int32_t>{0});
}

}  // namespace corner_pipeline_test
