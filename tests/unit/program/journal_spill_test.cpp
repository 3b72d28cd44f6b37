#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "model/program/journal.hpp"

using namespace lockstep;

namespace {

class MemoryStore final : public ChunkStore {
 public:
  uint64_t save(std::span<const std::byte> bytes) override {
    chunks.emplace_back(bytes.begin(), bytes.end());
    return chunks.size() - 1;
  }
  void load(uint64_t number, std::span<std::byte> bytes) override {
    REQUIRE(chunks.at(number).size() == bytes.size());
    std::memcpy(bytes.data(), chunks[number].data(), bytes.size());
  }
  std::vector<std::vector<std::byte>> chunks;
};

// Three chunks and a piece on each of two lanes, every row different.
void fill(Journal& journal) {
  for (uint32_t number = 0; number < 3 * LaneJournal::chunk_rows + 5; ++number) {
    for (uint16_t lane = 0; lane < 2; ++lane) {
      Row row;
      row.sequence = number + 1;
      row.bytes = int64_t{number} * 2 + lane;
      journal.append(0, LaneId{lane}, row);
    }
  }
}

}  // namespace

TEST_CASE("a journal that spills reads like one that stays in memory") {
  MemoryStore store;
  Journal resident(1, {});
  Journal spilled(1, {.store = &store, .resident_chunks_max = 1});
  fill(resident);
  fill(spilled);
  CHECK(store.chunks.size() >= 4);
  CHECK(differences(resident, spilled).empty());
  for (int32_t lane = 0; lane < 2; ++lane) {
    int64_t index = 0;
    spilled.lane(0, lane).for_each([&](const Row& row) {
      REQUIRE(row == resident.lane(0, lane).row(index));
      ++index;
    });
    CHECK(index == resident.lane(0, lane).size());
  }
}
