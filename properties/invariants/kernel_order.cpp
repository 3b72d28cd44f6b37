#include "properties/invariants/kernel_order.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "properties/invariants/matched_collectives.hpp"

namespace lockstep {

namespace {

// One collective of one communicator, by position.
using CallKey = std::pair<uint64_t, int64_t>;

struct HostCall {
  Time issue{};
  CallKey key;
  Call call;
};

bool is_kernel(const Call& call) { return call.kind != OpKind::new_group; }

// Whether some rank puts collectives of several groups on several streams. On one stream they wait
// for each other, and what they wait for is a hang of its own.
bool uses_several_streams(const Journal& journal) {
  for (const int32_t rank : journal.own_ranks()) {
    std::map<uint32_t, std::set<uint32_t>> groups_of_stream;
    std::set<uint32_t> groups;
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      journal.lane(rank, lane).for_each([&](const Row& row) {
        if (row.row == RowKind::op && is_collective(row.kind) && row.kind != OpKind::new_group) {
          groups.insert(row.group.value);
          groups_of_stream[row.stream.value].insert(row.group.value);
        }
      });
    }
    if (groups.size() > 1 && groups_of_stream.size() > 1) {
      return true;
    }
  }
  return false;
}

// The kernels of one rank in the order in which its host submitted them.
std::vector<HostCall> host_order(const Journal& journal, int32_t rank,
                                 const std::vector<Communicator>& all) {
  std::vector<HostCall> order;
  const bool several_lanes = journal.lanes(rank) > 1;
  const std::map<uint64_t, std::vector<Call>> calls = calls_by_communicator(journal, rank);
  for (const Communicator& communicator : all) {
    const auto own = calls.find(communicator.key);
    if (own == calls.end() || !communicator.members.contains(rank) ||
        communicator.members.size() < 2) {
      continue;
    }
    int64_t position = 0;
    for (const Call& call : own->second) {
      if (is_kernel(call)) {
        const Time issue =
            several_lanes
                ? journal.lane(rank, call.ticket.lane.value).completion(call.ticket.sequence).issue
                : Time();
        order.push_back({issue, {communicator.key, position}, call});
      }
      ++position;
    }
  }
  std::sort(order.begin(), order.end(), [](const HostCall& a, const HostCall& b) {
    return std::tie(a.issue, a.call.row, a.key) < std::tie(b.issue, b.call.row, b.key);
  });
  return order;
}

/// What all ranks' orders say together: an edge from each kernel to those of the same rank's next
/// submission. Kernels of one grouped call have no order.
class KernelOrder {
 public:
  explicit KernelOrder(const Journal& journal)
      : journal_(journal), communicators_(communicators(journal)) {
    for (const int32_t rank : journal.own_ranks()) {
      orders_.push_back({rank, host_order(journal, rank, communicators_)});
      connect(orders_.back().calls);
    }
  }

  /// Two kernels that one rank submits in one order, and another rank (or a circle of several)
  /// in the other; the one that comes first on the first rank.
  struct Crossing {
    int32_t rank = 0;
    const HostCall* first = nullptr;
    const HostCall* second = nullptr;
  };
  std::optional<Crossing> crossing() const {
    using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
    Graph graph(edges_.begin(), edges_.end(), nodes_.size());
    std::vector<uint32_t> component(nodes_.size());
    boost::strong_components(graph, boost::make_iterator_property_map(
                                        component.begin(), boost::get(boost::vertex_index, graph)));
    for (const OrderOfRank& of_rank : orders_) {
      const std::vector<HostCall>& order = of_rank.calls;
      for (size_t i = 1; i < order.size(); ++i) {
        if (component[nodes_.at(order[i - 1].key)] == component[nodes_.at(order[i].key)] &&
            order[i - 1].key.first != order[i].key.first) {
          return Crossing{of_rank.rank, &order[i - 1], &order[i]};
        }
      }
    }
    return std::nullopt;
  }

  /// Ranks that submit `first` before `second`.
  RankSet in_order(const CallKey& first, const CallKey& second) const {
    RankSet running;
    for (const OrderOfRank& of_rank : orders_) {
      const auto place = [&](const CallKey& key) {
        return std::find_if(of_rank.calls.begin(), of_rank.calls.end(),
                            [&key](const HostCall& call) { return call.key == key; });
      };
      const auto a = place(first);
      const auto b = place(second);
      if (a < b && b != of_rank.calls.end()) {
        running.add(of_rank.rank);
      }
    }
    RankSet ranks;
    for (int32_t rank = 0; rank < journal_.ranks(); ++rank) {
      if (running.contains(journal_.own_rank(rank)) && is_member(rank, first.first) &&
          is_member(rank, second.first)) {
        ranks.add(rank);
      }
    }
    return ranks;
  }

  std::string label(uint64_t communicator) const {
    const Communicator* const known = find(communicator);
    return known == nullptr ? "?" : known->label;
  }

 private:
  /// Of a rank with a journal of its own.
  struct OrderOfRank {
    int32_t rank = 0;
    std::vector<HostCall> calls;
  };

  const Communicator* find(uint64_t key) const {
    const auto found = std::ranges::find(communicators_, key, &Communicator::key);
    return found == communicators_.end() ? nullptr : &*found;
  }
  bool is_member(int32_t rank, uint64_t communicator) const {
    const Communicator* const known = find(communicator);
    return known != nullptr && known->members.contains(rank);
  }
  uint32_t node(const CallKey& key) {
    return nodes_.try_emplace(key, static_cast<uint32_t>(nodes_.size())).first->second;
  }

  void connect(const std::vector<HostCall>& order) {
    std::vector<uint32_t> before;
    for (size_t begin = 0; begin < order.size();) {
      std::vector<uint32_t> together;
      size_t end = begin;
      for (; end < order.size() && order[end].call.ticket == order[begin].call.ticket; ++end) {
        together.push_back(node(order[end].key));
      }
      for (const uint32_t from : before) {
        for (const uint32_t to : together) {
          edges_.emplace_back(from, to);
        }
      }
      before = std::move(together);
      begin = end;
    }
  }

  const Journal& journal_;
  std::vector<Communicator> communicators_;
  std::vector<OrderOfRank> orders_;
  std::map<CallKey, uint32_t> nodes_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
};

bool is_before_2_26(const std::string& nccl) {
  int major = 0;
  int minor = 0;
  return std::sscanf(nccl.c_str(), "%d.%d", &major, &minor) == 2 &&
         std::make_pair(major, minor) < std::make_pair(2, 26);
}

// "Using multiple NCCL communicators concurrently" of NCCL's user guide.
std::vector<std::string> consequences(const std::string& nccl) {
  std::vector<std::string> lines = {
      "each kernel of NCCL stays on its GPU until its peers have come: the job hangs where the "
      "kernels of both groups do not fit onto a GPU at once, or where the driver serializes them"};
  if (is_before_2_26(nccl)) {
    lines.push_back(fmt::format(
        "NCCL {} asks for one order of all groups' calls on every rank, by streams or waits",
        nccl));
  } else {
    lines.push_back(fmt::format(
        "{}before 2.26 NCCL asks for one order of all groups' calls on every rank; from 2.26 on "
        "NCCL_LAUNCH_ORDER_IMPLICIT=1 (not the default) keeps the host's order, which differs here",
        nccl.empty() ? "" : fmt::format("this is NCCL {}: ", nccl)));
  }
  return lines;
}

std::string text_of(const KernelOrder& order, const HostCall& first, const HostCall& second) {
  return fmt::format("{} of group {}, then {} of group {}", name_of(first.call.kind),
                     order.label(first.key.first), name_of(second.call.kind),
                     order.label(second.key.first));
}

}  // namespace

std::vector<Finding> no_kernel_order_hazard(const RunResult& run, const std::string& nccl) {
  if (run.hung || run.journal == nullptr || !uses_several_streams(*run.journal)) {
    return {};
  }
  const KernelOrder order(*run.journal);
  const auto crossing = order.crossing();
  if (!crossing) {
    return {};
  }
  const HostCall& first = *crossing->first;
  const HostCall& second = *crossing->second;
  const RankSet these = order.in_order(first.key, second.key);
  const RankSet others = order.in_order(second.key, first.key);
  Finding finding = finding_of(
      "LS106", Level::warning,
      others.empty()
          ? std::string("collectives of several groups have no order that fits all ranks: this "
                        "ends only while their kernels run at the same time")
          : fmt::format("{} and {} call two groups in a different order, on streams that do not "
                        "wait for each other: this ends only while both groups' kernels run at the "
                        "same time",
                        these.phrase(), others.phrase()));
  finding.ranks = these;
  finding.ranks.add(others);
  const auto number_of = [&](const CallKey& key) {
    return CallNumbers(*run.journal, crossing->rank, key.first).of(key.second);
  };
  finding.group = order.label(first.key.first);
  finding.call = number_of(first.key);
  finding.did = {{these, finding.call, text_of(order, first, second), first.call.site}};
  if (!others.empty()) {
    finding.did.push_back(
        {others, number_of(second.key), text_of(order, second, first), second.call.site});
  }
  finding.sites = {
      {first.call.site, SiteRole::subject,
       fmt::format("call {} of group {}", finding.call, order.label(first.key.first))}};
  if (second.call.site != first.call.site) {
    finding.sites.push_back(
        {second.call.site, SiteRole::other,
         fmt::format("call {} of group {}", number_of(second.key), order.label(second.key.first))});
  }
  finding.follows = consequences(nccl);
  finding.fix = remedy_for("LS106");
  return {finding};
}

}  // namespace lockstep
