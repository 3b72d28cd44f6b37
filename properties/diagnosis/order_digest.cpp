#include "properties/diagnosis/order_digest.hpp"

#include <boost/container_hash/hash.hpp>

#include "properties/diagnosis/lane_times.hpp"

namespace lockstep {

namespace {

/// What the search for races reads of a rank, and when other lanes start beside the first, as one
/// number.
class OrderDigest {
 public:
  OrderDigest(const Journal& journal, int32_t rank) {
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      add(journal.lane(rank, lane));
    }
    add_starts(journal, rank);
  }
  size_t value() const { return value_; }

 private:
  template <class... Numbers>
  void add_all(const Numbers&... numbers) {
    (boost::hash_combine(value_, static_cast<uint64_t>(numbers)), ...);
  }

  void add(const LaneJournal& rows) {
    add_all(rows.size());
    for (int64_t number = 0; number < rows.size(); ++number) {
      const Row row = rows.row(number);
      const RowLists lists = rows.lists_of(row);
      add_all(row.row, row.kind, row.kernel, row.stream.value, row.sequence, row.site.value);
      if (row.row != RowKind::op) {
        add_all(row.peer, row.tag);
      }
      add_all(lists.after.size(), lists.reads.size(), lists.writes.size());
      for (const Ticket after : lists.after) {
        add_all(after.lane.value, after.sequence);
      }
      for (const auto& slices : {lists.reads, lists.writes}) {
        for (const Slice& slice : slices) {
          add_all(slice.buffer.value, slice.dtype, slice.begin, slice.elements);
        }
      }
    }
  }

  void add_starts(const Journal& journal, int32_t rank) {
    for (int32_t lane = 1; lane < journal.lanes(rank); ++lane) {
      const LaneJournal& first = journal.lane(rank, 0);
      const Time issue = first_issue(journal.lane(rank, lane));
      int64_t number = 0;
      while (number < first.size() && time_past(journal, rank, first.row(number)) <= issue) {
        ++number;
      }
      add_all(number);
    }
  }

  size_t value_ = 0;
};

}  // namespace

size_t order_digest(const Journal& journal, int32_t rank) {
  return OrderDigest(journal, rank).value();
}

}  // namespace lockstep
