#include "model/program/journal.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/core/random.hpp"

namespace lockstep {

void LaneJournal::append(const Row& row) {
  if (chunks_.empty() || chunks_.back().rows.size() == chunk_rows || chunks_.back().stored != 0) {
    chunks_.emplace_back();
  }
  chunks_.back().rows.push_back(row);
  ++size_;
}

uint32_t LaneJournal::append_lists(const OpLists& lists) {
  lists_.push_back({{lists.after.begin(), lists.after.end()},
                    {lists.reads.begin(), lists.reads.end()},
                    {lists.writes.begin(), lists.writes.end()},
                    {lists.splits.begin(), lists.splits.end()}});
  return static_cast<uint32_t>(lists_.size());
}

void LaneJournal::complete(uint32_t sequence, const Completion& completion) {
  if (sequence >= completions_.size()) {
    completions_.resize(sequence + 1);
  }
  completions_[sequence] = completion;
}

void LaneJournal::truncate(int64_t size) {
  ensure(size >= 0 && size <= size_, "a journal is cut within its length");
  while (size_ > size) {
    std::vector<Row>& rows = chunks_.back().rows;
    ensure(chunks_.back().stored == 0, "a spilled chunk is not cut");
    const auto cut = std::min(static_cast<int64_t>(rows.size()), size_ - size);
    rows.resize(rows.size() - static_cast<size_t>(cut));
    size_ -= cut;
    if (rows.empty()) {
      chunks_.pop_back();
    }
  }
}

std::vector<Row> LaneJournal::rows_of(const Chunk& chunk) const {
  if (chunk.stored == 0) {
    return chunk.rows;
  }
  std::vector<Row> rows(chunk_rows);
  store_->load(chunk.stored - 1, std::as_writable_bytes(std::span(rows)));
  return rows;
}

Row LaneJournal::row(int64_t index) const {
  ensure(index >= 0 && index < size_, "a row of the journal");
  // All chunks but the last are full.
  const Chunk& chunk = chunks_[static_cast<size_t>(index / chunk_rows)];
  const auto offset = static_cast<size_t>(index % chunk_rows);
  return chunk.stored == 0 ? chunk.rows[offset] : rows_of(chunk)[offset];
}

const RowLists* LaneJournal::lists_of(const Row& row) const {
  return row.lists == 0 ? nullptr : &lists_[row.lists - 1];
}

Completion LaneJournal::completion(uint32_t sequence) const {
  return sequence < completions_.size() ? completions_[sequence] : Completion{};
}

void LaneJournal::for_each(const std::function<void(const Row&)>& visit) const {
  for (const Chunk& chunk : chunks_) {
    if (chunk.stored == 0) {
      std::for_each(chunk.rows.begin(), chunk.rows.end(), visit);
    } else {
      const std::vector<Row> rows = rows_of(chunk);
      std::for_each(rows.begin(), rows.end(), visit);
    }
  }
}

Row RowCursor::next() {
  while (row_ == rows_.size()) {
    rows_ = lane_->rows_of(lane_->chunks_[chunk_++]);
    row_ = 0;
  }
  return rows_[row_++];
}

Journal::Journal(int32_t ranks, const JournalOptions& options)
    : groups(static_cast<size_t>(ranks)), options_(options), lanes_(static_cast<size_t>(ranks)) {
  for (auto& lanes_of_rank : lanes_) {
    lanes_of_rank.push_back(std::make_unique<LaneJournal>());
    lanes_of_rank.back()->store_ = options.store;
  }
}

int32_t Journal::lanes(int32_t rank) const {
  return static_cast<int32_t>(lanes_[static_cast<size_t>(rank)].size());
}

uint64_t Journal::communicator(int32_t rank, GroupId group) const {
  const auto& known = groups[static_cast<size_t>(rank)];
  return group.value < known.size() ? known[group.value].communicator : 0;
}

uint64_t communicator_key(uint64_t parent, int64_t call, std::span<const int32_t> members) {
  uint64_t key = random_key(parent, static_cast<uint64_t>(call));
  for (const int32_t member : members) {
    key = random_key(key, static_cast<uint64_t>(member));
  }
  return key == 0 ? 1 : key;
}

LaneJournal& Journal::lane(int32_t rank, LaneId lane) {
  auto& lanes_of_rank = lanes_[static_cast<size_t>(rank)];
  while (lanes_of_rank.size() <= lane.value) {
    lanes_of_rank.push_back(std::make_unique<LaneJournal>());
    lanes_of_rank.back()->store_ = options_.store;
  }
  return *lanes_of_rank[lane.value];
}

const LaneJournal& Journal::lane(int32_t rank, int32_t lane) const {
  return *lanes_[static_cast<size_t>(rank)][static_cast<size_t>(lane)];
}

void Journal::append(int32_t rank, LaneId lane, const Row& row) {
  if (closed_) {
    return;
  }
  LaneJournal& rows = this->lane(rank, lane);
  rows.append(row);
  if (options_.store != nullptr && rows.chunks_.back().rows.size() == LaneJournal::chunk_rows) {
    spill(rows);
  }
}

void Journal::spill(LaneJournal& lane) {
  if (++resident_chunks_ <= options_.resident_chunks_max) {
    return;
  }
  LaneJournal::Chunk& chunk = lane.chunks_.back();
  chunk.stored = options_.store->save(std::as_bytes(std::span(chunk.rows))) + 1;
  chunk.rows = {};
  --resident_chunks_;
}

Row row_of(const Op& op, Ticket ticket) {
  Row row;
  row.kind = op.kind;
  row.dtype = op.dtype;
  row.reduction = op.reduction;
  row.stream = op.stream;
  row.kernel = op.kernel;
  row.group = op.group;
  row.peer = op.peer;
  row.tag = op.tag;
  row.site = op.site;
  row.sequence = ticket.sequence;
  row.bytes = is_communication(op.kind) || op.kind == OpKind::copy ? op.bytes.count() : op.work;
  return row;
}

std::string text_of(const Row& row) {
  switch (row.row) {
    case RowKind::op:
      return fmt::format("{} {} {} group {} peer {} tag {} bytes {} stream {} site {:#x} #{}",
                         name_of(row.kind), name_of(row.dtype), name_of(row.reduction),
                         row.group.value, row.peer, row.tag, row.bytes, row.stream.value,
                         row.site.value, row.sequence);
    case RowKind::promise: return fmt::format("promise #{}", row.sequence);
    case RowKind::fulfil: return fmt::format("fulfil #{}", row.sequence);
    case RowKind::settle: return fmt::format("settle #{} of lane {}", row.sequence, row.peer);
    case RowKind::read: return fmt::format("read {} bytes of buffer {}", row.bytes, row.tag);
    case RowKind::choice:
      return fmt::format("choice {}: {} of {}", name_of(static_cast<ChoiceKind>(row.tag)), row.peer,
                         row.bytes);
    case RowKind::allocate:
      return fmt::format("allocate buffer {}: {} bytes for {}", row.tag, row.bytes,
                         name_of(static_cast<Purpose>(row.peer)));
    case RowKind::release: return fmt::format("release buffer {}", row.tag);
    case RowKind::raise: return fmt::format("raise at site {:#x}", row.site.value);
    case RowKind::finish: return "finish";
  }
  return "?";
}

namespace {

void compare_lanes(const LaneJournal& left, const LaneJournal& right, JournalDifference place,
                   size_t limit, std::vector<JournalDifference>& found) {
  const int64_t rows = std::max(left.size(), right.size());
  RowCursor left_rows(left);
  RowCursor right_rows(right);
  for (int64_t index = 0; index < rows && found.size() < limit; ++index) {
    const bool in_left = index < left.size();
    const bool in_right = index < right.size();
    const Row a = in_left ? left_rows.next() : Row{};
    const Row b = in_right ? right_rows.next() : Row{};
    Row a_without_lists = a;
    a_without_lists.lists = b.lists;
    if (in_left == in_right && a_without_lists == b) {
      continue;
    }
    place.row = index;
    place.text =
        fmt::format("{} | {}", in_left ? text_of(a) : "nothing", in_right ? text_of(b) : "nothing");
    found.push_back(place);
    return;
  }
}

}  // namespace

std::vector<JournalDifference> differences(const Journal& left, const Journal& right,
                                           size_t limit) {
  std::vector<JournalDifference> found;
  static const LaneJournal nothing;
  for (int32_t rank = 0; rank < std::max(left.ranks(), right.ranks()); ++rank) {
    const int32_t lanes_left = rank < left.ranks() ? left.lanes(rank) : 0;
    const int32_t lanes_right = rank < right.ranks() ? right.lanes(rank) : 0;
    for (int32_t lane = 0; lane < std::max(lanes_left, lanes_right); ++lane) {
      compare_lanes(lane < lanes_left ? left.lane(rank, lane) : nothing,
                    lane < lanes_right ? right.lane(rank, lane) : nothing, {rank, lane, 0, ""},
                    limit, found);
    }
  }
  return found;
}

}  // namespace lockstep
