#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "model/core/failure.hpp"
#include "model/core/op.hpp"
#include "model/program/chunk_memory.hpp"
#include "model/program/completion.hpp"

namespace lockstep {

/// What a row of a journal records. The first kinds are those of Op; the others are host order.
enum class RowKind : uint8_t {
  op,        ///< kind and arguments of an Op
  promise,   ///< a ticket settled by hand was made
  fulfil,    ///< sequence: which
  settle,    ///< the host waited for ticket `sequence` of lane `peer`
  read,      ///< the host read `bytes` of buffer `tag`
  choice,    ///< ChoiceKind `tag`, alternatives `bytes`, taken `peer`
  allocate,  ///< buffer `tag`, `bytes`, purpose `peer`, on `stream` of its device
  release,   ///< buffer `tag`, given up at `site`
  raise,     ///< the lane ended by an exception at `site`
  finish,    ///< the lane's program ended
};

/// One thing that a lane did, in host order.
struct Row {
  RowKind row = RowKind::op;
  OpKind kind = OpKind::event;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  StreamId stream{};
  Kernel kernel = Kernel::timed;
  GroupId group{};
  int32_t peer = 0;
  int32_t tag = 0;
  SiteId site{};
  uint32_t sequence = 0;  ///< of the ticket; parts of a grouped call share it
  uint32_t lists = 0;     ///< where this row's lists are kept; 0 = nowhere: they are empty
  int64_t bytes = 0;
  bool operator==(const Row&) const = default;
};
static_assert(sizeof(Row) == 40);

/// The lists of one operation, kept when a journal is detailed; all empty when it is not. A view:
/// what it shows stays as it is for as long as the view lives, whatever is spilled meanwhile.
struct RowLists {
  std::span<const Ticket> after;
  std::span<const Slice> reads;
  std::span<const Slice> writes;
  std::span<const int64_t> splits;
  std::shared_ptr<const std::byte[]> chunk{};  ///< that the spans point into
};

/// The rows of one lane, with the completions of its tickets and the lists of its operations, each
/// in chunks that can be spilled. Lanes with a store share full chunks of equal rows, and pack
/// those of settled completions. Reading loads what is spilled, so a journal with a store is read
/// by one thread at a time; without, lanes may be written and read at the same time.
class LaneJournal {
 public:
  static constexpr uint32_t chunk_rows = 512;
  static constexpr uint32_t chunk_completions = 512;
  static constexpr uint32_t chunk_words = 2048;  ///< of 8 bytes, for lists

  /// Null: nothing is ever spilled.
  explicit LaneJournal(ChunkMemory* memory = nullptr) : memory_(memory) {}

  void append(const Row& row) {
    if (size_ == room_) {
      make_room_for_row();
    }
    open_rows_[size_ % chunk_rows] = row;
    ++size_;
  }
  /// Returns the value for Row::lists. Throws std::length_error beyond 32 GiB of lists.
  uint32_t append_lists(const OpLists& lists);
  void complete(uint32_t sequence, const Completion& completion);
  /// Forgets all rows from `size` on.
  void truncate(int64_t size);

  int64_t size() const { return size_; }
  Row row(int64_t index) const;
  RowLists lists_of(const Row& row) const;
  /// Pending when the world never said what became of it.
  Completion completion(uint32_t sequence) const;
  /// Whether there is such a row, but for chunks of rows that were `visited`, which others share.
  /// Adds its own.
  template <class Wanted>
  bool has_row(const Wanted& wanted, std::unordered_set<const Chunk*>& visited) const {
    bool found = false;
    for_each_chunk(
        [&](std::span<const Row> rows) {
          found = found || std::any_of(rows.begin(), rows.end(), wanted);
        },
        &visited);
    return found;
  }
  /// Calls `visit` for each row in order; loads each spilled chunk once.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_chunk([&visit](std::span<const Row> rows) {
      for (const Row& row : rows) {
        visit(row);
      }
    });
  }

 private:
  friend class RowCursor;
  using Chunks = std::vector<std::unique_ptr<Chunk>>;

  void for_each_chunk(const std::function<void(std::span<const Row>)>& visit,
                      std::unordered_set<const Chunk*>* visited = nullptr) const;
  void make_room_for_row();
  void close_rows();
  void own_last_rows();
  void open_last_rows();
  Completion* completion_to_change(uint32_t sequence);
  void close_completions(Chunk& chunk);
  void unpack_completions(Chunk& chunk);
  uint64_t make_room_for_lists(uint64_t words);
  const std::shared_ptr<std::byte[]>& bytes_of(Chunk& chunk) const;
  void close(Chunk& chunk);

  ChunkMemory* memory_;
  std::vector<std::shared_ptr<Chunk>> rows_;  ///< full ones may be those of other lanes too
  int64_t size_ = 0;
  int64_t room_ = 0;          ///< rows for which there is memory
  Row* open_rows_ = nullptr;  ///< of the last chunk
  Chunks completions_;        ///< null: all pending
  Chunks lists_;              ///< by word; null: continues the chunk before
  uint64_t next_word_ = 0;
  uint32_t last_lists_ = 0;  ///< as in Row
};

/// The rows of a lane one after the other: loads each spilled chunk once.
class RowCursor {
 public:
  explicit RowCursor(const LaneJournal& lane) : lane_(&lane) {}
  /// There must be one: at most `size` calls.
  Row next();

 private:
  const LaneJournal* lane_;
  int64_t index_ = 0;
  std::shared_ptr<const std::byte[]> chunk_;
};

}  // namespace lockstep
