#include "model/program/lane_journal.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "model/core/ensure.hpp"
#include "model/core/random.hpp"
#include "model/program/packed_completions.hpp"

namespace lockstep {

namespace {

constexpr size_t word_bytes = 8;
constexpr uint32_t first_elements = 8;  // most lanes of a large world stay short

static_assert(alignof(Row) <= word_bytes && alignof(Completion) <= word_bytes);
static_assert(alignof(Ticket) <= word_bytes && sizeof(Ticket) == word_bytes);
static_assert(alignof(Slice) <= word_bytes && sizeof(Slice) % word_bytes == 0);
static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Completion> &&
              std::is_trivially_copyable_v<Ticket> && std::is_trivially_copyable_v<Slice>);

// Lists follow one another, each after its number of elements.
struct ListSizes {
  uint32_t after;
  uint32_t reads;
  uint32_t writes;
  uint32_t splits;
};
static_assert(sizeof(ListSizes) == 2 * word_bytes);

template <class Element>
Element* elements_of(const std::shared_ptr<std::byte[]>& bytes) {
  return reinterpret_cast<Element*>(bytes.get());
}

void grow(Chunk& chunk, int64_t size) {
  std::shared_ptr<std::byte[]> larger(new std::byte[static_cast<size_t>(size)]);
  std::copy_n(chunk.bytes.get(), chunk.size, larger.get());
  chunk.bytes = std::move(larger);
  chunk.size = size;
}

// The first chunk grows as a vector does, the others have their final size at once.
int64_t roomier(const Chunk& chunk, int64_t needed, int64_t full, bool first) {
  return first ? std::min(full, std::max(needed, 2 * chunk.size)) : full;
}

template <class Element>
std::byte* put(std::byte* to, std::span<const Element> elements) {
  const auto bytes = std::as_bytes(elements);
  return std::copy(bytes.begin(), bytes.end(), to);
}

template <class Element>
std::span<const Element> take(const std::byte*& from, uint32_t count) {
  const std::span<const Element> elements(reinterpret_cast<const Element*>(from), count);
  from += elements.size_bytes();
  return elements;
}

template <class Element>
bool equal(std::span<const Element> left, std::span<const Element> right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

// By its values: between them lie bytes that have none.
uint64_t hash_of(const Row& row) {
  const uint64_t what =
      static_cast<uint64_t>(row.row) << 48 | static_cast<uint64_t>(row.kind) << 40 |
      static_cast<uint64_t>(row.dtype) << 32 | static_cast<uint64_t>(row.reduction) << 24 |
      static_cast<uint64_t>(row.kernel) << 16 | uint64_t{row.stream.value};
  const uint64_t where = uint64_t{row.group.value} << 32 | uint64_t{row.site.value};
  const uint64_t which =
      uint64_t{static_cast<uint32_t>(row.peer)} << 32 | uint64_t{static_cast<uint32_t>(row.tag)};
  const uint64_t number = uint64_t{row.sequence} << 32 | uint64_t{row.lists};
  return random_key(random_key(random_key(what, where), random_key(which, number)),
                    static_cast<uint64_t>(row.bytes));
}

std::span<const Row> rows_of_full(const Chunk& chunk) {
  return {elements_of<Row>(chunk.bytes), LaneJournal::chunk_rows};
}

}  // namespace

// Rows

void LaneJournal::make_room_for_row() {
  const auto full = static_cast<int64_t>(chunk_rows * sizeof(Row));
  if (size_ % chunk_rows == 0) {
    if (!rows_.empty()) {
      close_rows();
    }
    rows_.push_back(std::make_shared<Chunk>());
  }
  Chunk& chunk = *rows_.back();
  grow(chunk, roomier(chunk, first_elements * sizeof(Row), full, rows_.size() == 1));
  open_last_rows();
}

void LaneJournal::close_rows() {
  if (memory_ == nullptr) {
    return;
  }
  uint64_t hash = 0;
  for (const Row& row : rows_of_full(*rows_.back())) {
    hash = random_key(hash, hash_of(row));
  }
  rows_.back() = memory_->one_of_alike(std::move(rows_.back()), hash,
                                       [](const Chunk& left, const Chunk& right) {
                                         return equal(rows_of_full(left), rows_of_full(right));
                                       });
  memory_->add(*rows_.back());
}

void LaneJournal::open_last_rows() {
  const Chunk& chunk = *rows_.back();
  open_rows_ = elements_of<Row>(chunk.bytes);
  room_ = static_cast<int64_t>((rows_.size() - 1) * chunk_rows) +
          chunk.size / static_cast<int64_t>(sizeof(Row));
}

void LaneJournal::truncate(int64_t size) {
  ensure(size >= 0 && size <= size_, "a journal is cut within its length");
  const auto chunks = static_cast<size_t>((size + chunk_rows - 1) / chunk_rows);
  size_ = size;
  room_ = size;
  for (size_t chunk = rows_.size(); chunk-- > chunks;) {
    if (memory_ != nullptr && rows_[chunk].use_count() == 1) {
      memory_->remove(*rows_[chunk]);
    }
    rows_.pop_back();
  }
  if (rows_.empty()) {
    return;
  }
  if (memory_ != nullptr) {
    own_last_rows();
  }
  open_last_rows();
}

// What is written to the last chunk from now on is this lane's alone, and so is the chunk: as the
// one that it was, other lanes might still come to share it.
void LaneJournal::own_last_rows() {
  std::shared_ptr<Chunk>& last = rows_.back();
  const auto own = std::make_shared<Chunk>();
  if (last.use_count() == 1) {
    memory_->load_to_change(*last);
    memory_->remove(*last);
    *own = std::move(*last);
  } else {
    own->bytes = bytes_of(*last);
    own->size = last->size;
    grow(*own, last->size);
  }
  last = own;
}

Row LaneJournal::row(int64_t index) const {
  ensure(index >= 0 && index < size_, "a row of the journal");
  return elements_of<Row>(
      bytes_of(*rows_[static_cast<size_t>(index / chunk_rows)]))[index % chunk_rows];
}

void LaneJournal::for_each_chunk(const std::function<void(std::span<const Row>)>& visit,
                                 std::unordered_set<const Chunk*>* visited) const {
  for (int64_t first = 0; first < size_; first += chunk_rows) {
    const std::shared_ptr<Chunk>& rows = rows_[static_cast<size_t>(first / chunk_rows)];
    if (visited != nullptr && !visited->insert(rows.get()).second) {
      continue;
    }
    // Held: what `visit` asks for may push it out of memory.
    const auto chunk = bytes_of(*rows);
    const int64_t count = std::min<int64_t>(chunk_rows, size_ - first);
    visit({elements_of<Row>(chunk), static_cast<size_t>(count)});
  }
}

Row RowCursor::next() {
  const int64_t offset = index_ % LaneJournal::chunk_rows;
  if (offset == 0) {
    const auto chunk = static_cast<size_t>(index_ / LaneJournal::chunk_rows);
    chunk_ = lane_->bytes_of(*lane_->rows_[chunk]);
  }
  ++index_;
  return reinterpret_cast<const Row*>(chunk_.get())[offset];
}

// Completions

void LaneJournal::complete(uint32_t sequence, const Completion& completion) {
  Completion& known = *completion_to_change(sequence);
  Chunk& chunk = *completions_[sequence / chunk_completions];
  const bool settles = known.outcome == Outcome::pending && completion.outcome != Outcome::pending;
  known = completion;
  chunk.settled += settles ? 1 : 0;
  if (chunk.settled == chunk_completions && settles) {
    close_completions(chunk);
  }
}

Completion* LaneJournal::completion_to_change(uint32_t sequence) {
  constexpr auto element = static_cast<int64_t>(sizeof(Completion));
  const size_t number = sequence / chunk_completions;
  const int64_t offset = sequence % chunk_completions;
  if (number >= completions_.size()) {
    completions_.resize(number + 1);
  }
  if (completions_[number] == nullptr) {
    completions_[number] = std::make_unique<Chunk>();
    completions_[number]->settled = number == 0 ? 1 : 0;  // no ticket has the number 0
  }
  Chunk& chunk = *completions_[number];
  if (chunk.is_packed) {
    unpack_completions(chunk);
  }
  if ((offset + 1) * element > chunk.size) {
    const int64_t before = chunk.size / element;
    grow(chunk, roomier(chunk, std::max<int64_t>(offset + 1, first_elements) * element,
                        chunk_completions * element, number == 0));
    std::uninitialized_fill(elements_of<Completion>(chunk.bytes) + before,
                            elements_of<Completion>(chunk.bytes) + chunk.size / element,
                            Completion{});
  }
  return elements_of<Completion>(chunk.bytes) + offset;
}

void LaneJournal::close_completions(Chunk& chunk) {
  if (memory_ == nullptr || !memory_->has_store()) {
    return;
  }
  PackedCompletions small = packed({elements_of<Completion>(chunk.bytes), chunk_completions});
  chunk.bytes = std::move(small.bytes);
  chunk.size = small.size;
  chunk.is_packed = true;
  memory_->add(chunk);
}

// Hardly ever: what has settled stays as it is, but for a grouped call of several parts.
void LaneJournal::unpack_completions(Chunk& chunk) {
  memory_->load_to_change(chunk);
  memory_->remove(chunk);
  constexpr size_t size = chunk_completions * sizeof(Completion);
  std::shared_ptr<std::byte[]> whole(new std::byte[size]);
  auto* const completions = elements_of<Completion>(whole);
  for (size_t index = 0; index < chunk_completions; ++index) {
    std::construct_at(completions + index, completion_in(chunk.bytes.get(), index));
  }
  chunk.bytes = std::move(whole);
  chunk.size = size;
  chunk.is_packed = false;
}

Completion LaneJournal::completion(uint32_t sequence) const {
  const size_t number = sequence / chunk_completions;
  const size_t offset = sequence % chunk_completions;
  if (number >= completions_.size() || completions_[number] == nullptr) {
    return {};
  }
  Chunk& chunk = *completions_[number];
  if (chunk.is_packed) {
    return completion_in(bytes_of(chunk).get(), offset);
  }
  const bool has_room = (offset + 1) * sizeof(Completion) <= static_cast<size_t>(chunk.size);
  return has_room ? elements_of<Completion>(chunk.bytes)[offset] : Completion{};
}

// Lists

uint32_t LaneJournal::append_lists(const OpLists& lists) {
  const ListSizes sizes{
      static_cast<uint32_t>(lists.after.size()), static_cast<uint32_t>(lists.reads.size()),
      static_cast<uint32_t>(lists.writes.size()), static_cast<uint32_t>(lists.splits.size())};
  const size_t bytes = lists.after.size_bytes() + lists.reads.size_bytes() +
                       lists.writes.size_bytes() + lists.splits.size_bytes();
  if (bytes == 0) {
    return 0;
  }
  Row last;
  last.lists = last_lists_;
  const RowLists before = lists_of(last);
  if (equal(before.after, lists.after) && equal(before.reads, lists.reads) &&
      equal(before.writes, lists.writes) && equal(before.splits, lists.splits)) {
    return last_lists_;
  }
  const uint64_t words = (sizeof(ListSizes) + bytes) / word_bytes;
  const uint64_t word = make_room_for_lists(words);
  std::byte* to = lists_[word / chunk_words]->bytes.get() + word % chunk_words * word_bytes;
  to = put(to, std::span<const ListSizes>(&sizes, 1));
  to = put(put(put(put(to, lists.after), lists.reads), lists.writes), lists.splits);
  next_word_ = word + words;
  last_lists_ = static_cast<uint32_t>(word) + 1;
  return last_lists_;
}

// Where the next lists begin. They do not cross the end of a chunk; what is longer than one has a
// chunk of its own.
uint64_t LaneJournal::make_room_for_lists(uint64_t words) {
  const uint64_t end = lists_.size() * chunk_words;
  const bool fits = !lists_.empty() && lists_.back() != nullptr && next_word_ + words <= end;
  const uint64_t word = fits ? next_word_ : end;
  if (word + words >= std::numeric_limits<uint32_t>::max()) {
    throw std::length_error("the lists of one lane's operations are longer than 32 GiB");
  }
  if (!fits) {
    if (!lists_.empty()) {
      close(*lists_[(last_lists_ - 1) / chunk_words]);
    }
    lists_.push_back(std::make_unique<Chunk>());
    lists_.resize((word + words + chunk_words - 1) / chunk_words);
  }
  Chunk& chunk = *lists_[word / chunk_words];
  const auto needed = static_cast<int64_t>((word % chunk_words + words) * word_bytes);
  if (needed > chunk.size) {
    const auto full = std::max(needed, static_cast<int64_t>(chunk_words * word_bytes));
    grow(chunk, roomier(chunk, needed, full, word < chunk_words));
  }
  return word;
}

RowLists LaneJournal::lists_of(const Row& row) const {
  if (row.lists == 0) {
    return {};
  }
  const uint64_t word = row.lists - 1;
  const auto& bytes = bytes_of(*lists_[word / chunk_words]);
  const std::byte* from = bytes.get() + word % chunk_words * word_bytes;
  const ListSizes sizes = take<ListSizes>(from, 1).front();
  RowLists lists;
  lists.after = take<Ticket>(from, sizes.after);
  lists.reads = take<Slice>(from, sizes.reads);
  lists.writes = take<Slice>(from, sizes.writes);
  lists.splits = take<int64_t>(from, sizes.splits);
  lists.chunk = bytes;
  return lists;
}

// Chunks

const std::shared_ptr<std::byte[]>& LaneJournal::bytes_of(Chunk& chunk) const {
  if (chunk.bytes == nullptr) {
    memory_->load(chunk);
  }
  return chunk.bytes;
}

void LaneJournal::close(Chunk& chunk) {
  if (memory_ != nullptr) {
    memory_->add(chunk);
  }
}

}  // namespace lockstep
