// Corner programs whose course depends on what arrives, in both worlds: parameter servers, stale
// workers, branches on received values.
#include <algorithm>

#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace corner_choices_test {

namespace {

constexpr int32_t gradient_tag = 1;
constexpr int32_t answer_tag = 2;
constexpr int32_t rounds = 3;

// An asynchronous parameter server: whoever comes is served.
Program serve_whoever_comes(Rank& rank, Seen& seen) {
  const Slice weight = metric(rank, DType::fp32, {0});
  const Slice gradient = metric(rank, DType::fp32, {0});
  for (int32_t push = 0; push < rounds * (rank.world_size() - 1); ++push) {
    const Ticket pushed = rank.receive(world_group, gradient, any_rank, gradient_tag,
                                       {.site = site_id("server: any gradient")});
    const Status status = co_await rank.settle(pushed);
    const Ticket applied = apply(rank, Kernel::add, gradient, weight);
    const auto worker = static_cast<int32_t>(status.source.value);
    const Ticket answered =
        rank.send(world_group, weight, worker, answer_tag, {.after = {applied}});
    co_await rank.settle(answered);
    seen.push_back(rank.read(weight));
  }
}

Program push_and_pull(Rank& rank, Seen& seen) {
  const Slice weight = metric(rank, DType::fp32, {0});
  const Slice gradient = metric(rank, DType::fp32, {rank.id() * 1.0});
  for (int32_t round = 0; round < rounds; ++round) {
    const Ticket pushed = rank.send(world_group, gradient, 0, gradient_tag);
    const Ticket pulled = rank.receive(world_group, weight, 0, answer_tag);
    const Ticket both[] = {pushed, pulled};
    co_await rank.settle_all(both);
    seen.push_back(rank.read(weight));
  }
}

Program parameter_server(Rank& rank, Seen& seen) {
  return rank.id() == 0 ? serve_whoever_comes(rank, seen) : push_and_pull(rank, seen);
}

// What a server keeps of its workers.
struct Workers {
  std::vector<int32_t> ids;      ///< whose next gradient is awaited
  std::vector<Ticket> arrivals;  ///< in the same order
  std::vector<Slice> slots;      ///< by rank
  std::vector<int32_t> clocks;   ///< gradients that have come, by rank
};

void await_gradient(Rank& rank, Workers& workers, int32_t id) {
  workers.ids.push_back(id);
  // A stream a worker: in one stream a worker that is late would hold up those behind it.
  const StreamId own = stream(static_cast<uint8_t>(queue::first_named + id));
  workers.arrivals.push_back(rank.receive(world_group, workers.slots[static_cast<size_t>(id)], id,
                                          gradient_tag, {.on = own}));
}

Workers open_receives(Rank& rank) {
  Workers workers;
  workers.clocks.resize(static_cast<size_t>(rank.world_size()));
  for (int32_t id = 0; id < rank.world_size(); ++id) {
    workers.slots.push_back(metric(rank, DType::fp32, {0}));
    if (id != 0) {
      await_gradient(rank, workers, id);
    }
  }
  return workers;
}

// Takes whichever gradient has come and awaits the worker's next one.
Task<int32_t> take_any(Rank& rank, Workers& workers, Slice weight) {
  const uint32_t index =
      co_await rank.settle_any(workers.arrivals, site_id("server: first of the gradients"));
  const int32_t id = workers.ids[index];
  workers.ids.erase(workers.ids.begin() + index);
  workers.arrivals.erase(workers.arrivals.begin() + index);
  const Ticket applied = apply(rank, Kernel::add, workers.slots[static_cast<size_t>(id)], weight);
  co_await rank.settle(applied);
  if (++workers.clocks[static_cast<size_t>(id)] < rounds) {
    await_gradient(rank, workers, id);
  }
  co_return id;
}

// K of W: a step is over when two of the three workers have come; the late one counts in the next.
Program backup_workers(Rank& rank, Seen& seen) {
  if (rank.id() != 0) {
    const Slice gradient = metric(rank, DType::fp32, {rank.id() * 1.0});
    for (int32_t round = 0; round < rounds; ++round) {
      const Ticket pushed = rank.send(world_group, gradient, 0, gradient_tag);
      co_await rank.settle(pushed);
    }
    co_return;
  }
  constexpr int32_t enough = 2;
  const Slice weight = metric(rank, DType::fp32, {0});
  Workers workers = open_receives(rank);
  for (int32_t arrived = 1; !workers.arrivals.empty(); ++arrived) {
    co_await take_any(rank, workers, weight);
    if (arrived % enough == 0 || workers.arrivals.empty()) {
      seen.push_back(rank.read(weight));
    }
  }
}

// Stale synchronous: no worker may be more than `staleness` rounds ahead of the slowest.
constexpr int32_t staleness = 1;

Program stale_server(Rank& rank, Seen& seen) {
  const Slice weight = metric(rank, DType::fp32, {0});
  Workers workers = open_receives(rank);
  std::vector<int32_t> held_back;
  while (!workers.arrivals.empty()) {
    held_back.push_back(co_await take_any(rank, workers, weight));
    const int32_t slowest = *std::min_element(workers.clocks.begin() + 1, workers.clocks.end());
    std::vector<Ticket> permitted;
    for (const int32_t id : held_back) {
      if (workers.clocks[static_cast<size_t>(id)] <= slowest + staleness) {
        permitted.push_back(rank.send(world_group, weight, id, answer_tag));
        seen.push_back(Values::of(DType::int32,
                                  {workers.clocks[static_cast<size_t>(id)] * 1.0, slowest * 1.0}));
      }
    }
    std::erase_if(held_back, [&](int32_t id) {
      return workers.clocks[static_cast<size_t>(id)] <= slowest + staleness;
    });
    co_await rank.settle_all(permitted);
  }
  seen.push_back(rank.read(weight));
}

Program stale_synchronous(Rank& rank, Seen& seen) {
  return rank.id() == 0 ? stale_server(rank, seen) : push_and_pull(rank, seen);
}

// Ends when the loss is small enough: the loss of all ranks, or each rank's own.
Program until_converged(Rank& rank, Seen& seen, bool decide_together) {
  const Slice loss = metric(rank, DType::fp32, {0});
  const Slice gradient = metric(rank, DType::fp32, {0});
  for (int32_t step = 1;; ++step) {
    rank.write(loss, Values::of(DType::fp32, {12.0 - step * (rank.id() + 1)}));
    if (decide_together) {
      const Ticket largest = rank.all_reduce(world_group, loss, Reduction::max);
      co_await rank.settle(largest);
    }
    const bool small = rank.read(loss).number(0) <= 6;
    if (rank.choose(site_id("if loss <= 6"), ChoiceKind::branch, 2, small ? 1 : 0) == 1) {
      break;
    }
    rank.write(gradient, Values::of(DType::fp32, {1}));
    const Ticket summed = rank.all_reduce(world_group, gradient, Reduction::sum);
    co_await rank.settle(summed);
    seen.push_back(rank.read(gradient));
  }
}

}  // namespace

TEST_CASE("an any-source parameter server answers alike in both worlds, given who came") {
  Worlds worlds;
  for (int32_t turn = 0; turn < 5; ++turn) {
    const Arm arm = run_both(worlds, world_of(4), parameter_server);
    CHECK(unfinished(arm).empty());
    REQUIRE(arm.seen[0].size() == 9);
    CHECK(arm.seen[0].back().number(0) == rounds * (1 + 2 + 3));
  }
}

TEST_CASE("a server that needs two of three workers counts every gradient once") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(4), backup_workers);
  CHECK(unfinished(arm).empty());
  REQUIRE(arm.seen[0].size() == 5);  // nine gradients, two at a time
  CHECK(arm.seen[0].back().number(0) == rounds * (1 + 2 + 3));
}

TEST_CASE("stale synchronous workers are held back by the slowest") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(4), stale_synchronous);
  CHECK(unfinished(arm).empty());
  REQUIRE(arm.seen[0].size() == 10);
  CHECK(arm.seen[0].back().number(0) == rounds * (1 + 2 + 3));
  for (size_t permission = 0; permission < 9; ++permission) {
    const Values& clocks = arm.seen[0][permission];
    CHECK(clocks.number(0) <= clocks.number(1) + staleness);
  }
}

TEST_CASE("a branch on a reduced value ends, one on a rank's own value hangs the others") {
  Worlds worlds;
  const Arm together = run_both(worlds, world_of(2), [](Rank& rank, Seen& seen) {
    return until_converged(rank, seen, true);
  });
  CHECK(unfinished(together).empty());
  CHECK(together.seen[0].size() == 5);  // 12 - 6 <= 6 in the sixth step
  CHECK(together.seen[0] == together.seen[1]);
  const Arm alone = run_both(worlds, world_of(2), [](Rank& rank, Seen& seen) {
    return until_converged(rank, seen, false);
  });
  CHECK(unfinished(alone) == std::vector<int32_t>{0});
  CHECK(alone.seen[0].size() == 2);  // rank 1 ends in its third step
}

}  // namespace corner_choices_test
