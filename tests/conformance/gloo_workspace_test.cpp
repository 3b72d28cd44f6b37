// Collectives of the in-process real world whose payloads travel in many chunks: their values, and
// what they hold beside the buffers that they are given.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "backend/gloo/collective_workspace.hpp"
#include "tests/conformance/gloo_world.hpp"

namespace lockstep::backend::gloo_workspace_test {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds plenty{60'000};
constexpr int64_t mebibyte = int64_t{1} << 20;
// More than the workspace, and no multiple of a chunk.
constexpr int64_t long_elements = 5 * mebibyte + 77;

// What rank `rank` holds at an index: exact in fp32, also summed over a few ranks.
double number_at(int64_t rank, int64_t index) {
  return static_cast<double>(1000 * (rank + 1) + index % 997);
}

Slice filled(Rank& rank, int64_t elements) {
  const Slice slice = rank.allocate(Purpose::metric, DType::fp32, elements);
  Values values(DType::fp32, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, number_at(rank.id(), i));
  }
  rank.write(slice, values);
  return slice;
}

// How many of `values` are not what `expected` says of their index.
template <class Expected>
double wrong(const Values& values, const Expected& expected) {
  int64_t count = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    count += values.number(i) != expected(i) ? 1 : 0;
  }
  return static_cast<double>(count);
}

double sum_at(int64_t ranks, int64_t index) {
  double sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    sum += number_at(rank, index);
  }
  return sum;
}

Program sums_in_chunks(Rank& rank, std::vector<double>& wrongs) {
  const int64_t ranks = rank.world_size();
  double& count = wrongs[static_cast<size_t>(rank.id())];
  const Slice sum = filled(rank, long_elements);
  const Ticket summed = rank.all_reduce(world_group, sum, Reduction::sum);
  co_await rank.settle(summed);
  count += wrong(rank.read(sum), [&](int64_t i) { return sum_at(ranks, i); });

  const Slice at_root = filled(rank, long_elements);
  const Ticket reduced = rank.reduce(world_group, at_root, Reduction::sum, 1);
  co_await rank.settle(reduced);
  const bool root = rank.id() == 1;
  count += wrong(rank.read(at_root),
                 [&](int64_t i) { return root ? sum_at(ranks, i) : number_at(rank.id(), i); });

  const Slice whole = filled(rank, ranks * long_elements);
  const Slice part = rank.allocate(Purpose::metric, DType::fp32, long_elements);
  const Ticket scattered = rank.reduce_scatter(world_group, whole, part, Reduction::sum);
  co_await rank.settle(scattered);
  const int64_t first = rank.id() * long_elements;
  count += wrong(rank.read(part), [&](int64_t i) { return sum_at(ranks, first + i); });
}

// Each member's own reduction of the same bytes, beyond a chunk.
Program unlike_sums_in_chunks(Rank& rank, std::vector<double>& wrongs) {
  const Slice data = filled(rank, long_elements);
  const bool greatest = rank.id() == 0;
  const Ticket done =
      rank.all_reduce(world_group, data, greatest ? Reduction::max : Reduction::sum);
  co_await rank.settle(done);
  const int64_t last = rank.world_size() - 1;
  wrongs[static_cast<size_t>(rank.id())] += wrong(rank.read(data), [&](int64_t i) {
    return greatest ? number_at(last, i) : sum_at(rank.world_size(), i);
  });
}

Program moves_in_chunks(Rank& rank, std::vector<double>& wrongs) {
  const int64_t ranks = rank.world_size();
  double& count = wrongs[static_cast<size_t>(rank.id())];
  const auto of_member = [](int64_t i) { return i / long_elements; };
  const auto within = [](int64_t i) { return i % long_elements; };
  const Slice own = filled(rank, long_elements);
  const Slice all = rank.allocate(Purpose::metric, DType::fp32, ranks * long_elements);
  const Ticket gathered = rank.all_gather(world_group, own, all);
  co_await rank.settle(gathered);
  count += wrong(rank.read(all), [&](int64_t i) { return number_at(of_member(i), within(i)); });

  const Slice wide = filled(rank, ranks * long_elements);
  const Ticket exchanged = rank.all_to_all(world_group, wide, all);
  co_await rank.settle(exchanged);
  const int64_t first = rank.id() * long_elements;
  count +=
      wrong(rank.read(all), [&](int64_t i) { return number_at(of_member(i), first + within(i)); });

  const Slice part = rank.allocate(Purpose::metric, DType::fp32, long_elements);
  const Ticket scattered = rank.scatter(world_group, wide, part, 1);
  co_await rank.settle(scattered);
  count += wrong(rank.read(part), [&](int64_t i) { return number_at(1, first + i); });

  const Ticket spread = rank.broadcast(world_group, own, 1);
  co_await rank.settle(spread);
  count += wrong(rank.read(own), [&](int64_t i) { return number_at(1, i); });

  const Slice mine = filled(rank, long_elements);
  const Slice of_all = rank.allocate(Purpose::metric, DType::fp32, ranks * long_elements);
  const Ticket at_root = rank.gather(world_group, mine, of_all, 1);
  co_await rank.settle(at_root);
  if (rank.id() == 1) {
    count +=
        wrong(rank.read(of_all), [&](int64_t i) { return number_at(of_member(i), within(i)); });
  }
}

// Input and output of an all_to_all in one buffer.
Program exchange_in_place(Rank& rank, std::vector<double>& wrongs) {
  const int64_t part = long_elements;
  const Slice data = filled(rank, 2 * part);
  const Ticket done = rank.all_to_all(world_group, data, data);
  co_await rank.settle(done);
  wrongs[static_cast<size_t>(rank.id())] += wrong(
      rank.read(data), [&](int64_t i) { return number_at(i / part, rank.id() * part + i % part); });
}

// From /proc/self/status, in bytes; 0 where there is none.
int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) {
      return std::stoll(line.substr(key.size())) * 1024;
    }
  }
  return 0;
}

// Whether the peak begins anew: not on every kernel, nor in every container.
bool forget_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;
  return clear.good() && status_bytes("VmHWM:") <= status_bytes("VmRSS:") + mebibyte;
}

// Buffers of zeros, which are made where nothing is written to them, but for one reduce_scatter.
Program one_reduce_scatter(Rank& rank, int64_t elements) {
  const Slice whole = rank.allocate(Purpose::metric, DType::fp32, elements);
  const Slice part = rank.allocate(Purpose::metric, DType::fp32, elements / rank.world_size());
  const Ticket done = rank.reduce_scatter(world_group, whole, part, Reduction::sum);
  co_await rank.settle(done);
}

template <class Body>
void check_in_world(int32_t ranks, const Body& body) {
  std::vector<double> wrongs(static_cast<size_t>(ranks), 0.0);
  const RunResult result =
      run(world_of(ranks), ends_after(plenty), [&](Rank& rank) { return body(rank, wrongs); });
  CHECK_FALSE(result.hung);
  CHECK(wrongs == std::vector<double>(static_cast<size_t>(ranks), 0.0));
}

}  // namespace

TEST_CASE("sums that travel in chunks have the values of their definition") {
  check_in_world(2, sums_in_chunks);
  check_in_world(3, sums_in_chunks);
}

TEST_CASE("sums in chunks whose reductions differ give each member its own") {
  check_in_world(3, unlike_sums_in_chunks);
}

TEST_CASE("data that travels in chunks comes where it belongs") {
  check_in_world(2, moves_in_chunks);
  check_in_world(3, moves_in_chunks);
  check_in_world(2, exchange_in_place);
}

// A thread's values are copied out and in, so each rank may hold input and output twice.
TEST_CASE("a reduce_scatter holds its buffers and a workspace, however many ranks there are") {
  constexpr int32_t ranks = 8;
  constexpr int64_t bytes = 16 * mebibyte;
  if (!forget_peak_memory()) {
    WARN("this kernel does not let a process forget its peak memory: not measured");
    return;
  }
  const int64_t before = status_bytes("VmRSS:");
  run(world_of(ranks), ends_after(plenty),
      [](Rank& rank) { return one_reduce_scatter(rank, bytes / 4); });
  const int64_t held = status_bytes("VmHWM:") - before;
  INFO(held / mebibyte << " MiB");
  CHECK(held <
        ranks * (2 * (bytes + bytes / ranks) + collective_workspace.count()) + 64 * mebibyte);
}

}  // namespace lockstep::backend::gloo_workspace_test
