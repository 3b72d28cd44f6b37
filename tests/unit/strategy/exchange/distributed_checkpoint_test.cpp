#include "model/strategy/exchange/distributed_checkpoint.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace distributed_checkpoint_test {

namespace {

std::vector<int64_t> bytes_by_rank(const CheckpointParts& parts, int32_t ranks) {
  std::vector<int64_t> bytes;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    bytes.push_back(parts.bytes_of(rank).count());
  }
  return bytes;
}

constexpr size_t name_length = 8;

}  // namespace

// 5 rows over 4 ranks are 2, 2, 1 and 0, as torch.chunk cuts them.
TEST_CASE("every rank writes the rows that it holds") {
  CheckpointParts parts(4, 4);
  parts.add_parameter(5, Bytes(16), name_length);
  parts.assign();
  CHECK(bytes_by_rank(parts, 4) == std::vector<int64_t>{32, 32, 16, 0});
}

// Ranks 0 and 2 hold the first halves, 1 and 3 the second ones. The first tensor, of 16 bytes, goes
// to the lower ranks; the second, of 8, to the others; the third, of 16, to these as well, which
// have 8 planned where the lower ones have 16.
TEST_CASE("of replicas the one with least to write writes a part") {
  CheckpointParts parts(4, 2);
  parts.add_parameter(4, Bytes(4), name_length);
  parts.add_parameter(2, Bytes(4), name_length);
  parts.add_parameter(2, Bytes(8), name_length);
  parts.assign();
  CHECK(bytes_by_rank(parts, 4) == std::vector<int64_t>{8, 8, 12, 12});
}

TEST_CASE("the parts of all ranks are the whole model, each element once") {
  for (int32_t shards = 1; shards <= 6; ++shards) {
    for (int32_t replicas = 1; replicas <= 3; ++replicas) {
      CheckpointParts parts(shards * replicas, shards);
      int64_t whole = 0;
      for (int64_t rows = 0; rows <= 13; ++rows) {
        const int64_t row = 4 * (1 + rows * 7 % 5);
        parts.add_parameter(rows, Bytes(row), name_length);
        parts.add_state(rows, Bytes(row), name_length);
        parts.add_counter(name_length);
        whole += 2 * rows * row;
      }
      parts.add_options(3);
      parts.assign();
      int64_t written = 0;
      for (const int64_t bytes : bytes_by_rank(parts, shards * replicas)) {
        written += bytes;
      }
      INFO(shards << " shards, " << replicas << " replicas");
      CHECK(written == whole);
    }
  }
}

TEST_CASE("a plan grows with the tensors, and what rank 0 sends at the end with their parts") {
  const auto of = [](int32_t shards, int tensors) {
    CheckpointParts parts(shards, shards);
    for (int tensor = 0; tensor < tensors; ++tensor) {
      parts.add_parameter(shards, Bytes(4), name_length);
    }
    parts.assign();
    return parts;
  };
  CHECK(of(2, 4).local_plan() > of(2, 3).local_plan());
  CHECK(of(2, 4).local_plan() == of(8, 4).local_plan());
  CHECK(of(8, 4).metadata() > of(2, 4).metadata());
}

}  // namespace distributed_checkpoint_test
