#include "properties/diagnosis/calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "model/core/random.hpp"

namespace lockstep {

namespace {

bool splits_must_agree(const Row& row) {
  return row.kind == OpKind::reduce_scatter || row.kind == OpKind::new_group;
}

bool has_uneven_parts(const Row& row, const LaneJournal& lane) {
  return row.kind == OpKind::all_to_all && !lane.lists_of(row).splits.empty();
}

Call call_of(const Journal& journal, const Row& row, Ticket ticket, int64_t index,
             const LaneJournal& lane) {
  Call call;
  call.kind = called_kind(journal, row);
  call.dtype = row.dtype;
  call.reduction = reduces(call.kind) ? row.reduction : Reduction::sum;
  call.root = has_root(row.kind) ? row.peer : 0;
  // Members of an uneven all_to_all rightly send different amounts.
  call.bytes = has_uneven_parts(row, lane) ? 0 : row.bytes;
  call.site = row.site;
  call.ticket = ticket;
  call.row = index;
  if (splits_must_agree(row)) {
    const RowLists lists = lane.lists_of(row);
    for (const int64_t part : lists.splits) {
      call.splits = random_key(call.splits, static_cast<uint64_t>(part));
    }
  }
  return call;
}

// Calls `visit(call, communicator)` for the collectives of one rank, lane by lane.
template <class Visit>
void for_each_call(const Journal& journal, int32_t rank, const Visit& visit) {
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const LaneJournal& rows = journal.lane(rank, lane);
    int64_t index = -1;
    rows.for_each([&](const Row& row) {
      ++index;
      if (row.row != RowKind::op || !is_collective(row.kind)) {
        return;
      }
      if (const auto communicator = communicator_of(journal, rank, row.group)) {
        const Ticket ticket{row.sequence, LaneId{static_cast<uint16_t>(lane)}};
        visit(call_of(journal, row, ticket, index, rows), *communicator);
      }
    });
  }
}

Time issue_of(const Journal& journal, int32_t rank, const Call& call) {
  const Completion completion =
      journal.lane(rank, call.ticket.lane.value).completion(call.ticket.sequence);
  const bool unknown = completion.outcome == Outcome::pending && completion.issue == Time();
  return unknown ? Time::max() : completion.issue;
}

void order_over_lanes(const Journal& journal, int32_t rank, std::vector<Call>& calls) {
  const bool one_lane = std::all_of(calls.begin(), calls.end(), [&calls](const Call& call) {
    return call.ticket.lane == calls.front().ticket.lane;
  });
  if (!one_lane) {
    std::stable_sort(calls.begin(), calls.end(), [&](const Call& a, const Call& b) {
      return issue_of(journal, rank, a) < issue_of(journal, rank, b);
    });
  }
}

using CommunicatorsByKey = std::map<uint64_t, Communicator>;

// `order`: keys of the communicators as they are found.
void add_groups_of(const Journal& journal, int32_t rank, CommunicatorsByKey& found,
                   std::vector<uint64_t>& order) {
  for (const Membership& group : journal.groups[static_cast<size_t>(rank)]) {
    if (group.communicator == 0) {
      continue;
    }
    Communicator& communicator = found[group.communicator];
    if (communicator.members.empty()) {
      order.push_back(group.communicator);
      communicator.key = group.communicator;
      communicator.members = RankSet(group.members);
      communicator.label = communicator.members.phrase();
    }
    // Who made the group without being in it takes no part, unless it calls there all the same.
    if (communicator.members.contains(rank)) {
      communicator.calls.push_back({rank, true, 0, 0, 0});
    }
  }
}

// Groups are known to the user by the name that `new_group` gave them.
void name_group(const Journal& journal, int32_t rank, const Call& call, CommunicatorsByKey& found) {
  const Site* const site = journal.sites.find(call.site);
  const Row row = journal.lane(rank, call.ticket.lane.value).row(call.row);
  const auto group =
      found.find(journal.communicator(rank, GroupId{static_cast<uint32_t>(std::max(0, row.tag))}));
  if (group == found.end() || group->first == 0) {
    return;
  }
  group->second.made_at = call.site;
  if (site != nullptr && !site->data.empty()) {
    group->second.label = fmt::format("{} ({})", site->data, group->second.members.phrase());
  }
}

void hash_calls_of(const Journal& journal, int32_t rank, CommunicatorsByKey& found) {
  std::map<uint64_t, std::vector<Call>> lanes_mixed;
  const bool several_lanes = journal.lanes(rank) > 1;
  const auto hash = [&found, rank](const Call& call, uint64_t key) {
    std::vector<MemberCalls>& members = found[key].calls;
    if (members.empty() || members.back().rank != rank) {
      members.push_back({rank, true, 0, 0, 0});
    }
    MemberCalls& calls = members.back();
    ++calls.count;
    calls.arguments = random_key(calls.arguments, call.arguments_hash());
    calls.sites = random_key(calls.sites, call.site.value);
  };
  for_each_call(journal, rank, [&](const Call& call, uint64_t key) {
    if (call.kind == OpKind::new_group) {
      name_group(journal, rank, call, found);
    }
    if (several_lanes) {
      lanes_mixed[key].push_back(call);
    } else {
      hash(call, key);
    }
  });
  for (auto& [key, calls] : lanes_mixed) {
    order_over_lanes(journal, rank, calls);
    for (const Call& call : calls) {
      hash(call, key);
    }
  }
}

// Ranks that share a journal are in the same groups, except in those of neighbours, and come after
// the first of them.
void add_calls_like(int32_t first, int32_t rank, CommunicatorsByKey& found) {
  for (auto& [key, communicator] : found) {
    std::vector<MemberCalls>& calls = communicator.calls;
    const auto same = std::ranges::lower_bound(calls, first, {}, &MemberCalls::rank);
    const bool are_together =
        communicator.members.contains(first) == communicator.members.contains(rank);
    if (same != calls.end() && same->rank == first && are_together) {
      MemberCalls own = *same;
      own.rank = rank;
      calls.push_back(own);
    }
  }
}

// Members that never made the group take part with no calls at all.
void add_absent_members(Communicator& communicator) {
  RankSet present;
  for (const MemberCalls& calls : communicator.calls) {
    present.add(calls.rank);
  }
  if (present == communicator.members) {
    return;
  }
  for (const int32_t rank : communicator.members.ranks()) {
    if (!present.contains(rank)) {
      communicator.calls.push_back({rank, false, 0, 0, 0});
    }
  }
  std::sort(communicator.calls.begin(), communicator.calls.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

}  // namespace

bool Call::same_arguments(const Call& other) const {
  return kind == other.kind && dtype == other.dtype && reduction == other.reduction &&
         root == other.root && bytes == other.bytes && splits == other.splits;
}

uint64_t Call::arguments_hash() const {
  uint64_t hash = static_cast<uint64_t>(kind) << 16 | static_cast<uint64_t>(dtype) << 8 |
                  static_cast<uint64_t>(reduction);
  hash = random_key(hash, static_cast<uint64_t>(root));
  hash = random_key(hash, static_cast<uint64_t>(bytes));
  return random_key(hash, splits);
}

OpKind called_kind(const Journal& journal, const Row& row) {
  if (row.kind != OpKind::all_reduce || row.bytes != size_of(DType::fp32)) {
    return row.kind;
  }
  const Site* site = journal.sites.find(row.site);
  return site != nullptr && site->is_barrier ? OpKind::barrier : row.kind;
}

std::string text_of(const Call& call) {
  std::string text(name_of(call.kind));
  if (call.kind == OpKind::barrier || call.kind == OpKind::new_group) {
    return text;
  }
  if (reduces(call.kind)) {
    text += fmt::format(" {}", name_of(call.reduction));
  }
  text += fmt::format(" {} [{}]", name_of(call.dtype), call.bytes / size_of(call.dtype));
  if (has_root(call.kind)) {
    const bool from = call.kind == OpKind::broadcast || call.kind == OpKind::scatter;
    text += fmt::format(" {} rank {}", from ? "from" : "to", call.root);
  }
  return text;
}

std::optional<uint64_t> communicator_of(const Journal& journal, int32_t rank, GroupId group) {
  if (group == world_group) {
    return 0;
  }
  const uint64_t key = journal.communicator(rank, group);
  return key == 0 ? std::nullopt : std::optional<uint64_t>(key);
}

std::vector<Communicator> communicators(const Journal& journal) {
  CommunicatorsByKey found;
  std::vector<uint64_t> order;
  Communicator& world = found[0];
  world.label = "world";
  world.members = RankSet::all(journal.ranks());
  world.calls.reserve(static_cast<size_t>(journal.ranks()));
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (journal.own_rank(rank) != rank) {
      add_calls_like(journal.own_rank(rank), rank, found);
      continue;
    }
    found[0].calls.push_back({rank, true, 0, 0, 0});
    add_groups_of(journal, rank, found, order);
    hash_calls_of(journal, rank, found);
  }
  std::map<std::string, int> uses;
  for (const uint64_t key : order) {
    std::string& label = found[key].label;
    const int use = ++uses[label];
    label += use == 1 ? "" : fmt::format(", group {}", use);
  }
  std::vector<Communicator> list;
  for (auto& [key, communicator] : found) {
    add_absent_members(communicator);
    list.push_back(std::move(communicator));
  }
  return list;
}

bool call_world_alike(const Journal& journal) {
  CommunicatorsByKey found;
  for (const int32_t rank : journal.own_ranks()) {
    const std::vector<Membership>& groups = journal.groups[static_cast<size_t>(rank)];
    if (std::ranges::any_of(groups, [](const auto& group) { return group.communicator != 0; })) {
      return false;
    }
    found[0].calls.push_back({rank, true, 0, 0, 0});
    hash_calls_of(journal, rank, found);
  }
  const std::vector<MemberCalls>& calls = found[0].calls;
  return found.size() == 1 && std::ranges::all_of(calls, [&calls](const MemberCalls& each) {
           return each.count == calls.front().count && each.arguments == calls.front().arguments &&
                  each.sites == calls.front().sites;
         });
}

std::vector<Call> calls_of(const Journal& journal, int32_t rank, uint64_t communicator) {
  std::vector<Call> calls;
  for_each_call(journal, rank, [&](const Call& call, uint64_t key) {
    if (key == communicator) {
      calls.push_back(call);
    }
  });
  order_over_lanes(journal, rank, calls);
  return calls;
}

std::map<uint64_t, std::vector<Call>> calls_by_communicator(const Journal& journal, int32_t rank) {
  std::map<uint64_t, std::vector<Call>> calls;
  for_each_call(journal, rank, [&](const Call& call, uint64_t key) { calls[key].push_back(call); });
  for (auto& [key, of_one] : calls) {
    order_over_lanes(journal, rank, of_one);
  }
  return calls;
}

int64_t count_of(const std::vector<Call>& calls, SiteId site) {
  return std::count_if(calls.begin(), calls.end(),
                       [site](const Call& call) { return call.site == site; });
}

bool makes_group_of(const Journal& journal, int32_t rank, const Call& call, const RankSet& ranks) {
  const LaneJournal& lane = journal.lane(rank, call.ticket.lane.value);
  const RowLists lists = lane.lists_of(lane.row(call.row));
  return std::any_of(lists.splits.begin(), lists.splits.end(), [&ranks](int64_t member) {
    return ranks.contains(static_cast<int32_t>(member));
  });
}

}  // namespace lockstep
