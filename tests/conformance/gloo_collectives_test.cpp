// Every operation of the in-process real world, with values worked out by hand.
#include <catch2/catch.hpp>

#include "tests/conformance/gloo_world.hpp"

namespace lockstep::backend::gloo_collectives_test {

using std::chrono::milliseconds;

namespace {

Program all_collectives(Rank& rank, Notes& notes) {
  const double r = rank.id();
  const int32_t world = rank.world_size();
  const Slice sum = metric(rank, DType::fp32, {r + 1, 10 * r});
  const Ticket summed = rank.all_reduce(world_group, sum, Reduction::sum);
  co_await rank.settle(summed);
  note(notes, rank, rank.read(sum));

  const Slice least = metric(rank, DType::int64, {r - 5});
  const Ticket reduced = rank.reduce(world_group, least, Reduction::min, world - 1);
  co_await rank.settle(reduced);
  note(notes, rank, rank.read(least));

  const Slice spread = metric(rank, DType::uint8, {r + 7});
  const Ticket spread_done = rank.broadcast(world_group, spread, world - 1);
  co_await rank.settle(spread_done);
  note(notes, rank, rank.read(spread));

  const Slice part = metric(rank, DType::fp64, {r, -r});
  const Slice whole = rank.allocate(Purpose::metric, DType::fp64, 2 * world);
  const Ticket gathered = rank.all_gather(world_group, part, whole);
  co_await rank.settle(gathered);
  note(notes, rank, rank.read(whole));

  const Ticket at_root = rank.gather(world_group, part, whole, 0);
  co_await rank.settle(at_root);
  if (rank.id() == 0) {
    note(notes, rank, rank.read(whole));
  }
  const Ticket barrier = rank.barrier(world_group);
  co_await rank.settle(barrier);
}

std::vector<double> expected_of_all_collectives(int32_t rank, int32_t world) {
  const double n = world;
  std::vector<double> numbers{n * (n + 1) / 2, 10 * n * (n - 1) / 2};
  numbers.push_back(rank == world - 1 ? -5 : rank - 5);
  numbers.push_back(n - 1 + 7);
  for (int times = 0; times < (rank == 0 ? 2 : 1); ++times) {
    for (int member = 0; member < world; ++member) {
      numbers.push_back(member);
      numbers.push_back(-member);
    }
  }
  return numbers;
}

Program split_collectives(Rank& rank, Notes& notes) {
  const int64_t world = rank.world_size();
  const Slice whole = rank.allocate(Purpose::metric, DType::fp32, 2 * world);
  Values numbers(DType::fp32, 2 * world);
  for (int64_t i = 0; i < 2 * world; ++i) {
    numbers.set(i, static_cast<double>(100 * rank.id() + i));
  }
  rank.write(whole, numbers);
  const Slice part = rank.allocate(Purpose::metric, DType::fp32, 2);
  const Ticket scattered = rank.scatter(world_group, whole, part, 0);
  co_await rank.settle(scattered);
  note(notes, rank, rank.read(part));

  const Ticket reduced = rank.reduce_scatter(world_group, whole, part, Reduction::sum);
  co_await rank.settle(reduced);
  note(notes, rank, rank.read(part));

  const Slice exchanged = rank.allocate(Purpose::metric, DType::fp32, 2 * world);
  const Ticket swapped = rank.all_to_all(world_group, whole, exchanged);
  co_await rank.settle(swapped);
  note(notes, rank, rank.read(exchanged));
}

// Rank r sends r + j + 1 elements to member j, all with the value 10 r + j.
Program uneven_all_to_all(Rank& rank, Notes& notes) {
  const int64_t world = rank.world_size();
  std::vector<int64_t> splits;
  std::vector<double> numbers;
  for (int64_t to = 0; to < world; ++to) {
    splits.push_back(rank.id() + to + 1);
    numbers.insert(numbers.end(), static_cast<size_t>(splits.back()),
                   static_cast<double>(10 * rank.id() + to));
  }
  const std::vector<int64_t> sent = splits;
  splits.insert(splits.end(), sent.begin(), sent.end());  // symmetric: as much comes from j
  const auto elements = static_cast<int64_t>(numbers.size());
  const Slice from = rank.allocate(Purpose::metric, DType::fp16, elements);
  rank.write(from, Values::of(DType::fp16, numbers));
  const Slice to = rank.allocate(Purpose::metric, DType::fp16, elements);
  const Ticket done = rank.all_to_all(world_group, from, to, splits);
  co_await rank.settle(done);
  note(notes, rank, rank.read(to));
}

// Every rank but the last sends each member one element, its own number; the last sends nothing.
Program all_to_all_without_one(Rank& rank, Notes& notes) {
  const int64_t world = rank.world_size();
  const int64_t own = rank.id() + 1 < world ? 1 : 0;
  std::vector<int64_t> splits(static_cast<size_t>(world), own);
  splits.insert(splits.end(), static_cast<size_t>(world - 1), 1);
  splits.push_back(0);
  const Slice whole = rank.allocate(Purpose::metric, DType::fp32, world);
  rank.write(whole,
             Values::of(DType::fp32, std::vector<double>(static_cast<size_t>(world), rank.id())));
  const Slice to = rank.allocate(Purpose::metric, DType::fp32, world - 1);
  const Ticket done = rank.all_to_all(world_group, whole.part(0, own * world), to, splits);
  co_await rank.settle(done);
  note(notes, rank, rank.read(to));
}

Program average(Rank& rank, Notes& notes, DType dtype) {
  const Slice value = metric(rank, dtype, {rank.id() + 2.0});
  const Ticket done = rank.all_reduce(world_group, value, Reduction::avg);
  co_await rank.settle(done);
  note(notes, rank, rank.read(value));
}

Program large_all_reduce(Rank& rank, Notes& notes) {
  const int64_t elements = 1 << 16;
  const Slice data = rank.allocate(Purpose::gradient, DType::fp32, elements);
  Values values(DType::fp32, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, static_cast<double>(i + rank.id()));
  }
  rank.write(data, values);
  const Ticket done = rank.all_reduce(world_group, data, Reduction::sum);
  co_await rank.settle(done);
  note(notes, rank, rank.read(data.part(elements - 2, 2)));
}

Program without_values(Rank& rank) {
  const Slice data = Slice::of_size(DType::fp32, int64_t{1} << 34);
  const Ticket sum = rank.all_reduce(world_group, data, Reduction::sum);
  const Ticket gathered = rank.all_gather(world_group, data, data);
  const Ticket tickets[] = {sum, gathered};
  co_await rank.settle_all(tickets);
}

// Bit patterns: the sum of rank 0 sees two floats, that of rank 1 one integer of the same size.
Program types_differ(Rank& rank, Notes& notes) {
  const bool floats = rank.id() == 0;
  const Slice data = floats ? metric(rank, DType::fp32, {1, 2}) : metric(rank, DType::int64, {0});
  const Ticket done = rank.all_reduce(world_group, data, floats ? Reduction::sum : Reduction::max);
  co_await rank.settle(done);
  note(notes, rank, rank.read(data));
}

// Beyond the inline limit, on three ranks; those with an odd number take the greatest.
Program long_reductions_differ(Rank& rank, Notes& notes) {
  const auto id = static_cast<double>(rank.id());
  const Slice data = rank.allocate(Purpose::metric, DType::fp64, 2000);
  rank.write(data, Values::of(DType::fp64, std::vector<double>(2000, id + 1)));
  const bool is_odd = rank.id() % 2 == 1;
  const Ticket done = rank.all_reduce(world_group, data, is_odd ? Reduction::max : Reduction::sum);
  co_await rank.settle(done);
  note(notes, rank, rank.read(data.part(0, 1)));
  note(notes, rank, rank.read(data.part(1999, 1)));
}

// The last rank's data carries no values, so that nothing is written anywhere.
Program long_sum_without_a_part(Rank& rank, Notes& notes) {
  const bool has_values = rank.id() < rank.world_size() - 1;
  const Slice data =
      rank.allocate(has_values ? Purpose::metric : Purpose::gradient, DType::fp64, 2000);
  rank.write(data, Values(DType::fp64, 2000));
  const Ticket done = rank.all_reduce(world_group, data, Reduction::max);
  co_await rank.settle(done);
  if (has_values) {
    note(notes, rank, rank.read(data.part(0, 1)));
  }
}

Program kernels_and_copies(Rank& rank, Notes& notes) {
  const Slice from = metric(rank, DType::fp32, {1, 2, 3});
  const Slice to = metric(rank, DType::fp32, {0, 0, 0});
  const double three = 3;
  KernelCall scale;
  scale.kernel = Kernel::scale;
  scale.reads = {&from, 1};
  scale.writes = {&to, 1};
  scale.scalars = {&three, 1};
  const Ticket scaled = rank.compute(scale);
  CommunicationOptions on_copy_stream;
  on_copy_stream.on = copy_stream;
  on_copy_stream.after = {scaled};
  const Ticket copied = rank.copy(to.part(1, 2), from.part(0, 2), on_copy_stream);
  const Ticket host = rank.host(Time(5));
  ComputeOptions after_copy;
  after_copy.after = {copied, host};
  const Ticket timed = rank.compute(Time(1000), after_copy);
  const Ticket mark = rank.event(after_copy);
  const Ticket tickets[] = {timed, mark};
  co_await rank.settle_all(tickets);
  note(notes, rank, rank.read(from));
}

}  // namespace

TEST_CASE("collectives leave the values of their definition on one to four ranks") {
  Fleet fleet;
  for (int32_t world = 1; world <= 4; ++world) {
    Notes notes(static_cast<size_t>(world));
    const RunResult result = run(world_of(world), ends_after(milliseconds(5000), &fleet),
                                 [&](Rank& rank) { return all_collectives(rank, notes); });
    CHECK_FALSE(result.hung);
    CHECK(result.operations == 6 * world);
    for (int32_t rank = 0; rank < world; ++rank) {
      CHECK(result.ends[static_cast<size_t>(rank)].kind == RankEnd::Kind::finished);
      CHECK(notes[static_cast<size_t>(rank)] == expected_of_all_collectives(rank, world));
    }
  }
}

TEST_CASE("scatter, reduce_scatter and all_to_all hand out equal parts in member order") {
  for (int32_t world = 1; world <= 4; ++world) {
    Notes notes(static_cast<size_t>(world));
    const RunResult result = run(world_of(world), ends_after(milliseconds(5000)),
                                 [&](Rank& rank) { return split_collectives(rank, notes); });
    CHECK_FALSE(result.hung);
    for (int32_t rank = 0; rank < world; ++rank) {
      const double first = 2.0 * rank;
      const double of_ranks = 100.0 * world * (world - 1) / 2;
      std::vector<double> expected{first, first + 1, of_ranks + world * first,
                                   of_ranks + world * (first + 1)};
      for (int32_t from = 0; from < world; ++from) {
        expected.push_back(100.0 * from + first);
        expected.push_back(100.0 * from + first + 1);
      }
      CHECK(notes[static_cast<size_t>(rank)] == expected);
    }
  }
}

TEST_CASE("an uneven all_to_all brings each member what was sent to it") {
  for (int32_t world = 1; world <= 3; ++world) {
    Notes notes(static_cast<size_t>(world));
    const RunResult result = run(world_of(world), ends_after(milliseconds(5000)),
                                 [&](Rank& rank) { return uneven_all_to_all(rank, notes); });
    CHECK_FALSE(result.hung);
    for (int32_t rank = 0; rank < world; ++rank) {
      std::vector<double> expected;
      for (int32_t from = 0; from < world; ++from) {
        expected.insert(expected.end(), static_cast<size_t>(from + rank + 1), 10 * from + rank);
      }
      CHECK(notes[static_cast<size_t>(rank)] == expected);
    }
  }
}

TEST_CASE("a member that sends nothing keeps no other from what it gets") {
  for (const int32_t world : {2, 3}) {
    Notes notes(static_cast<size_t>(world));
    const RunResult result = run(world_of(world), ends_after(milliseconds(5000)),
                                 [&](Rank& rank) { return all_to_all_without_one(rank, notes); });
    CHECK_FALSE(result.hung);
    const std::vector<double> expected =
        world == 2 ? std::vector<double>{0} : std::vector<double>{0, 1};
    for (const std::vector<double>& seen : notes) {
      CHECK(seen == expected);
    }
  }
}

TEST_CASE("an average of integers drops the fraction, one of floats keeps it") {
  for (const DType dtype : {DType::int64, DType::fp32}) {
    Notes notes(2);
    run(world_of(2), ends_after(milliseconds(5000)),
        [&](Rank& rank) { return average(rank, notes, dtype); });
    const double expected = dtype == DType::int64 ? 2 : 2.5;
    CHECK(notes == Notes{{expected}, {expected}});
  }
}

TEST_CASE("a payload larger than the inline limit arrives whole") {
  Notes notes(3);
  RunOptions options = world_of(3);
  options.numerics = true;
  run(options, ends_after(milliseconds(5000)),
      [&](Rank& rank) { return large_all_reduce(rank, notes); });
  const std::vector<double> expected{3.0 * 65534 + 3, 3.0 * 65535 + 3};
  CHECK(notes == Notes{expected, expected, expected});
}

TEST_CASE("buffers without values move nothing, however large they are") {
  const RunResult result = run(world_of(2), ends_after(milliseconds(5000)),
                               [](Rank& rank) { return without_values(rank); });
  CHECK_FALSE(result.hung);
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
}

TEST_CASE("members with another type or reduction of the same size complete, each with its own") {
  Notes notes(2);
  const RunResult result = run(world_of(2), ends_after(milliseconds(5000)),
                               [&](Rank& rank) { return types_differ(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes[0] == std::vector<double>{1, 2});
  // 1.0f is 0x3f800000 in the low half, 2.0f is 0x40000000 in the high half.
  CHECK(notes[1] == std::vector<double>{static_cast<double>(0x400000003f800000)});
}

TEST_CASE("long sums whose reductions differ complete too, each member with its own") {
  Notes notes(3);
  const RunResult result = run(world_of(3), ends_after(milliseconds(5000)),
                               [&](Rank& rank) { return long_reductions_differ(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{6, 6}, {3, 3}, {6, 6}});
}

TEST_CASE("a long sum of which a part carries no values completes and writes nothing") {
  Notes notes(3);
  RunOptions options = world_of(3);
  options.numerics = false;
  const RunResult result = run(options, ends_after(milliseconds(5000)),
                               [&](Rank& rank) { return long_sum_without_a_part(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{0}, {0}, {}});
}

TEST_CASE("kernels, copies, events and host work follow their dependencies over streams") {
  Notes notes(2);
  const RunResult result = run(world_of(2), ends_after(milliseconds(5000)),
                               [&](Rank& rank) { return kernels_and_copies(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{6, 9, 3}, {6, 9, 3}});
}

}  // namespace lockstep::backend::gloo_collectives_test
