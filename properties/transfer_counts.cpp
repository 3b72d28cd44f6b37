#include "properties/transfer_counts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "model/strategy/data_parallel/device_copy.hpp"
#include "properties/rank_set.hpp"

namespace lockstep {

namespace {

using Key = std::pair<OpKind, std::string>;

std::string label_of(const Journal& journal, int32_t rank, GroupId group) {
  const auto& known = journal.groups[static_cast<size_t>(rank)];
  if (group == world_group) {
    return "world";
  }
  return group.value < known.size() ? RankSet(known[group.value].members).phrase()
                                    : std::string("unknown group");
}

int64_t members_of(const Journal& journal, int32_t rank, GroupId group) {
  const auto& known = journal.groups[static_cast<size_t>(rank)];
  if (group == world_group) {
    return journal.ranks();
  }
  return group.value < known.size() ? std::ssize(known[group.value].members) : 0;
}

std::map<Key, TransferCount> by_key(const std::vector<TransferCount>& counts) {
  std::map<Key, TransferCount> keyed;
  for (const TransferCount& one : counts) {
    TransferCount& sum = keyed
                             .try_emplace({one.kind, one.group},
                                          TransferCount{one.kind, one.group, 0, 0, one.members})
                             .first->second;
    sum.count += one.count;
    sum.bytes += one.bytes;
  }
  return keyed;
}

/// The group with the place of `group` on a rank that runs for another one, as that one calls it.
std::string counterpart_of_group(const Journal& journal, const std::string& group, int32_t running,
                                 int32_t rank) {
  const auto groups = static_cast<uint32_t>(journal.groups[static_cast<size_t>(running)].size());
  for (uint32_t id = 1; id < groups; ++id) {
    if (label_of(journal, running, GroupId{static_cast<uint16_t>(id)}) == group) {
      return label_of(journal, rank, GroupId{static_cast<uint16_t>(id)});
    }
  }
  return group;
}

/// What other lanes submit within rows of the main lane: after `begin`, at `end` at the latest.
struct SubmissionSpan {
  std::optional<Time> begin{};  ///< none: from the start on
  Time end = Time::max();

  bool holds(Time issue) const { return (!begin || issue > *begin) && issue <= end; }
};

SubmissionSpan span_of(const Journal& journal, int32_t rank, const RowRange& range) {
  SubmissionSpan span;
  if (range.begin == 0 && range.end == RowRange().end) {
    return span;
  }
  span.end = Time{};
  const LaneJournal& lane = journal.lane(rank, 0);
  int64_t index = -1;
  lane.for_each([&](const Row& row) {
    ++index;
    if (row.row != RowKind::op || index >= range.end) {
      return;
    }
    const Time issue = lane.completion(row.sequence).issue;
    if (index < range.begin) {
      span.begin = issue;
    }
    span.end = std::max(span.end, issue);
  });
  return span;
}

}  // namespace

bool moves_between_gpus(const Row& row) {
  return row.row == RowKind::op &&
         (is_communication(row.kind) || (row.kind == OpKind::copy && row.tag == between_devices));
}

std::vector<TransferCount> counts_for_rank(const Journal& journal,
                                           std::vector<TransferCount> counts, int32_t rank) {
  const int32_t running = journal.own_rank(rank);
  if (running == rank) {
    return counts;
  }
  for (TransferCount& count : counts) {
    count.group = counterpart_of_group(journal, count.group, running, rank);
  }
  std::vector<TransferCount> in_order;
  for (const auto& [key, count] : by_key(counts)) {
    in_order.push_back(count);
  }
  return in_order;
}

std::vector<TransferCount> transfers_of(const Journal& journal, int32_t rank, const RowRange& range,
                                        std::span<const RowsAgain> again) {
  std::vector<TransferCount> all;
  const auto times_again = [&](int32_t lane, int64_t index) {
    int64_t times = 0;
    for (const RowsAgain& rows : again) {
      const bool has_row = rows.lane == lane && rows.begin <= index && index < rows.end;
      times += has_row ? rows.times : 0;
    }
    return times;
  };
  const SubmissionSpan span =
      journal.lanes(rank) > 1 ? span_of(journal, rank, range) : SubmissionSpan();
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const LaneJournal& rows = journal.lane(rank, lane);
    int64_t index = -1;
    rows.for_each([&](const Row& row) {
      ++index;
      if (!moves_between_gpus(row)) {
        return;
      }
      const bool is_within = lane == 0 ? index >= range.begin && index < range.end
                                       : span.holds(rows.completion(row.sequence).issue);
      const int64_t times = (is_within ? 1 : 0) + times_again(lane, index);
      if (times > 0) {
        const bool copies = row.kind == OpKind::copy;
        all.push_back({row.kind,
                       copies ? std::string("own GPUs") : label_of(journal, rank, row.group), times,
                       row.bytes * times, copies ? 0 : members_of(journal, rank, row.group)});
      }
    });
  }
  std::vector<TransferCount> sums;
  for (const auto& [key, sum] : by_key(all)) {
    sums.push_back(sum);
  }
  return sums;
}

int64_t bytes_sent(const TransferCount& count) {
  const int64_t ranks = std::max<int64_t>(count.members, 1);
  const auto of_ring = [&](int64_t rounds) {
    return static_cast<int64_t>(static_cast<double>(count.bytes) * static_cast<double>(rounds) *
                                static_cast<double>(ranks - 1) / static_cast<double>(ranks));
  };
  switch (count.kind) {
    case OpKind::all_reduce: return of_ring(2);
    case OpKind::reduce_scatter:
    case OpKind::all_to_all: return of_ring(1);
    case OpKind::all_gather: return count.bytes * (ranks - 1);
    case OpKind::recv: return 0;
    default: return count.bytes;
  }
}

std::vector<TransferCount> transfers_per_step(std::vector<TransferCount> counts, int64_t steps) {
  for (TransferCount& one : counts) {
    if (steps <= 0 || one.count % steps != 0 || one.bytes % steps != 0) {
      return {};
    }
    one.count /= steps;
    one.bytes /= steps;
  }
  return counts;
}

std::vector<std::string> transfer_differences(const std::vector<TransferCount>& expected,
                                              const std::vector<TransferCount>& actual) {
  const auto wanted = by_key(expected);
  auto found = by_key(actual);
  for (const auto& [key, count] : wanted) {
    found.try_emplace(key, TransferCount{count.kind, count.group, 0, 0, count.members});
  }
  std::vector<std::string> sentences;
  for (const auto& [key, is] : found) {
    const auto at = wanted.find(key);
    const TransferCount must =
        at == wanted.end() ? TransferCount{is.kind, is.group, 0, 0, is.members} : at->second;
    if (must.count != is.count || must.bytes != is.bytes) {
      sentences.push_back(fmt::format("{} of {}: {} calls and {} bytes, expected {} and {}",
                                      name_of(is.kind), is.group, is.count, is.bytes, must.count,
                                      must.bytes));
    }
  }
  return sentences;
}

}  // namespace lockstep
