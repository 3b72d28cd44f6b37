// Corner programs of ranks with a second host thread, in both worlds: Horovod's negotiation and
// Bagua's asynchronous averaging.
#include <memory>

#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace corner_lanes_test {

namespace {

constexpr uint32_t tensors = 3;
constexpr uint32_t closed = tensors;  ///< the last bit of a ready set: this rank wants to end

/// What the two lanes of a rank share. Things are enqueued in each rank's own order.
struct Negotiation {
  std::vector<Slice> data;
  std::vector<Ticket> enqueued;  ///< promises, one a tensor and one for the end
  std::vector<Ticket> reduced;   ///< promises, one a tensor
  uint32_t ready = 0;            ///< bit i: tensor i is enqueued
};

/// Horovod's background thread: each cycle the ranks agree on what is ready everywhere, and reduce
/// that in the order of the tensors' numbers. What a rank finds ready in a cycle is free.
Program background(Rank& rank, GroupId group, std::shared_ptr<Negotiation> shared) {
  const Slice bits = metric(rank, DType::uint8, {0, 0, 0, 0});
  std::vector<bool> done(tensors + 1);
  for (bool open = true; open;) {
    const uint32_t ready = rank.choose(site_id("horovod: ready set"), ChoiceKind::branch,
                                       1u << (tensors + 1), shared->ready);
    Values flags(DType::uint8, tensors + 1);
    for (uint32_t i = 0; i <= closed; ++i) {
      if ((ready >> i & 1) != 0) {
        co_await rank.settle(shared->enqueued[i]);
        flags.set(i, 1);
      }
    }
    rank.write(bits, flags);
    const Ticket agreed = rank.all_reduce(group, bits, Reduction::min);
    co_await rank.settle(agreed);
    const Values everywhere = rank.read(bits);
    for (uint32_t i = 0; i < tensors; ++i) {
      if (everywhere.number(i) == 1 && !done[i]) {
        const Ticket reduced = rank.all_reduce(group, shared->data[i], Reduction::sum);
        co_await rank.settle(reduced);
        rank.fulfil(shared->reduced[i]);
        done[i] = true;
      }
    }
    open = everywhere.number(closed) == 0;
  }
}

void enqueue(Rank& rank, Negotiation& shared, uint32_t what) {
  shared.ready |= 1u << what;
  rank.fulfil(shared.enqueued[what]);
}

// Rank r begins with tensor r, so that no two ranks submit in the same order.
Program negotiating(Rank& rank, Seen& seen) {
  const auto owned = std::make_shared<Negotiation>();
  Negotiation& shared = *owned;
  const Rank::NewGroup own = rank.split_group(world_group, 0);
  co_await rank.settle(own.ready);
  for (uint32_t i = 0; i <= closed; ++i) {
    shared.enqueued.push_back(rank.promise());
    shared.reduced.push_back(rank.promise());
    shared.data.push_back(metric(rank, DType::fp32, {(rank.id() + 1.0) * (i + 1)}));
  }
  rank.start_lane(background(rank, own.group, owned));
  for (uint32_t turn = 0; turn < tensors; ++turn) {
    const uint32_t tensor = (turn + rank.place().rank.value) % tensors;
    const Ticket backward = rank.compute(Time(1'000'000 * (rank.id() + 1)));
    co_await rank.settle(backward);
    enqueue(rank, shared, tensor);
  }
  for (uint32_t tensor = 0; tensor < tensors; ++tensor) {
    co_await rank.settle(shared.reduced[tensor]);
    seen.push_back(rank.read(shared.data[tensor]));
  }
  rank.fulfil(shared.reduced[closed]);
  enqueue(rank, shared, closed);
}

// One lane: a rank averages whenever its own rule says so; the ranks count rounds differently.
Program polling_average(Rank& rank, Seen& seen) {
  const Slice weight = metric(rank, DType::fp32, {rank.id() * 1.0});
  for (int32_t step = 0; step < 4; ++step) {
    const bool due = step % (rank.id() + 1) == 0;
    if (rank.choose(site_id("average now?"), ChoiceKind::branch, 2, due ? 1 : 0) == 1) {
      const Ticket averaged = rank.all_reduce(world_group, weight, Reduction::avg);
      co_await rank.settle(averaged);
      seen.push_back(rank.read(weight));
    }
  }
}

/// Which lane may touch the weights: each ends its turn by fulfilling the other's promise.
struct HandOff {
  Slice weight;
  Ticket averager_may_go;
  Ticket trainer_may_go;
  bool training = true;
};

// Rounds go on until no rank trains any more, so every rank does the same number of them.
Program average_until_all_end(Rank& rank, std::shared_ptr<HandOff> shared) {
  const Slice training = metric(rank, DType::uint8, {0});
  for (bool anyone = true; anyone;) {
    if (shared->training) {
      co_await rank.settle(shared->averager_may_go);
    }
    rank.write(training, Values::of(DType::uint8, {shared->training ? 1.0 : 0.0}));
    const Ticket asked = rank.all_reduce(world_group, training, Reduction::max);
    const Ticket averaged = rank.all_reduce(world_group, shared->weight, Reduction::avg);
    const Ticket both[] = {asked, averaged};
    co_await rank.settle_all(both);
    anyone = rank.read(training).number(0) == 1;
    if (shared->training) {
      const Ticket go = shared->trainer_may_go;
      shared->averager_may_go = rank.promise();
      rank.fulfil(go);
    }
  }
}

Program train_beside_averaging(Rank& rank, Seen& seen) {
  const auto owned = std::make_shared<HandOff>();
  HandOff& shared = *owned;
  const int32_t steps = 2 + rank.id();
  shared.weight = metric(rank, DType::fp32, {0});
  const Slice gradient = metric(rank, DType::fp32, {4});
  shared.averager_may_go = rank.promise();
  rank.start_lane(average_until_all_end(rank, owned));
  for (int32_t step = 0; step < steps; ++step) {
    const Ticket stepped = apply(rank, Kernel::add, gradient, shared.weight);
    co_await rank.settle(stepped);
    const Ticket go = shared.averager_may_go;
    shared.trainer_may_go = rank.promise();
    rank.fulfil(go);
    co_await rank.settle(shared.trainer_may_go);
    seen.push_back(rank.read(shared.weight));
  }
  shared.training = false;
  rank.fulfil(shared.averager_may_go);
}

}  // namespace

TEST_CASE("tensors that ranks submit in different orders are reduced once each by negotiation") {
  Worlds worlds;
  for (int32_t turn = 0; turn < 5; ++turn) {
    const Arm arm = run_both(worlds, world_of(3), negotiating);
    CHECK(unfinished(arm).empty());
    for (const Seen& seen : arm.seen) {
      CHECK(numbers_of(seen) == Numbers{6, 12, 18});
    }
  }
}

TEST_CASE("averaging from one lane hangs when the ranks do different numbers of rounds") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(2), polling_average);
  CHECK(unfinished(arm) == std::vector<int32_t>{0});
  CHECK(numbers_of(arm.seen[0]) == Numbers{0.5, 0.5});
}

TEST_CASE("averaging on a lane of its own with a fair hand-off ends, whatever the steps") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(2), train_beside_averaging);
  CHECK(unfinished(arm).empty());
  CHECK(numbers_of(arm.seen[0]) == Numbers{4, 8});
  CHECK(numbers_of(arm.seen[1]) == Numbers{4, 8, 10});  // alone it adds 4 and keeps half of it
}

}  // namespace corner_lanes_test
