#include "model/strategy/exchange/negotiation/tensor_fusion.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace tensor_fusion_test {

namespace {

using Calls = std::vector<std::vector<size_t>>;

FusibleTensor tensor(int64_t bytes, int64_t alike = 0) { return {alike, true, Bytes(bytes)}; }

}  // namespace

TEST_CASE("Horovod's threshold is a multiple of what the ranks of a node divide evenly") {
  const Bytes asked(int64_t{128} << 20);
  CHECK(working_threshold(asked, 8) == Bytes(134217728));
  CHECK(working_threshold(asked, 6) == Bytes(134218752));
  CHECK(working_threshold(Bytes(0), 6) == Bytes(0));
}

TEST_CASE("tensors travel together up to the threshold, which they may reach") {
  const FusibleTensor list[] = {tensor(10), tensor(20), tensor(30)};
  CHECK(fuse(list, Bytes(60)) == Calls{{0, 1, 2}});
  CHECK(fuse(list, Bytes(59)) == Calls{{0, 1}, {2}});
  CHECK(fuse(list, Bytes(0)) == Calls{{0}, {1}, {2}});
}

TEST_CASE("a tensor that does not fit is skipped while it and the call would fit together") {
  const FusibleTensor another_type[] = {tensor(10), tensor(5, 1), tensor(10), tensor(5, 1)};
  CHECK(fuse(another_type, Bytes(30)) == Calls{{0, 2}, {1, 3}});
  const FusibleTensor large[] = {tensor(10), tensor(25, 1), tensor(10)};
  CHECK(fuse(large, Bytes(30)) == Calls{{0}, {1}, {2}});
  // What was skipped counts on: 10 + 8 + 8 is below 30, with the third it is not.
  const FusibleTensor several[] = {tensor(10), tensor(8, 1), tensor(8, 1), tensor(8, 1),
                                   tensor(10)};
  CHECK(fuse(several, Bytes(30)) == Calls{{0}, {1, 2, 3}, {4}});
}

TEST_CASE("what does not fuse is a call by itself and holds nothing up") {
  FusibleTensor list[] = {tensor(10), tensor(1), tensor(10)};
  list[1].fuses = false;
  CHECK(fuse(list, Bytes(30)) == Calls{{0, 2}, {1}});
}

}  // namespace tensor_fusion_test
