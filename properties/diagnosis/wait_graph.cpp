#include "properties/diagnosis/wait_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <deque>
#include <map>
#include <set>

namespace lockstep {

class WaitGraph::Builder {
 public:
  Builder(const OperationTable& table, const RunProgress& progress, std::vector<WaitNode>& nodes)
      : table_(table), progress_(progress), nodes_(nodes) {}

  void build() {
    for (const RunProgress::LaneProgress& lane : progress_.lanes) {
      lanes_[{lane.rank, lane.lane}] =
          add({WaitNode::Kind::lane, lane.rank, lane.lane, OperationTable::none, {}, lane.ended});
    }
    for (const auto& [key, queue] : progress_.queues) {
      for (const size_t operation : queue) {
        operations_[operation] = add({WaitNode::Kind::operation,
                                      table_[operation].rank,
                                      table_[operation].lane,
                                      operation,
                                      {},
                                      false});
      }
    }
    for (const RunProgress::LaneProgress& lane : progress_.lanes) {
      for (const Ticket ticket : lane.waits) {
        wait_for_ticket(lanes_.at({lane.rank, lane.lane}), lane.rank, ticket);
      }
    }
    for (const auto& [key, queue] : progress_.queues) {
      if (!queue.empty()) {  // of a replay: a queue that has done all its work is still there
        connect_queue(queue);
      }
    }
  }

 private:
  uint32_t add(WaitNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  void connect(uint32_t from, uint32_t to) { nodes_[from].waits_for.push_back(to); }

  void wait_for_ticket(uint32_t from, int32_t rank, Ticket ticket) {
    if (progress_.ticket_done(table_, rank, ticket)) {
      return;
    }
    const auto [first, end] = table_.of_ticket(rank, ticket);
    for (size_t operation = first; operation < end; ++operation) {
      if (progress_.done[operation] == 0 && operations_.contains(operation)) {
        connect(from, operations_.at(operation));
      }
    }
    if (first == end) {
      wait_for_promise(from, rank);
    }
  }

  // Any other lane might fulfil it: one that has not ended, where there is one.
  void wait_for_promise(uint32_t from, int32_t rank) {
    std::vector<uint32_t> others;
    for (auto lane = lanes_.lower_bound({rank, LaneId{}});
         lane != lanes_.end() && lane->first.first == rank; ++lane) {
      if (lane->second != from) {
        others.push_back(lane->second);
      }
    }
    const auto has_ended = [this](uint32_t lane) { return nodes_[lane].ended; };
    if (!std::ranges::all_of(others, has_ended)) {
      std::erase_if(others, has_ended);
    }
    for (const uint32_t other : others) {
      connect(from, other);
    }
  }

  // The first of a queue (all parts of a grouped call) has been reached; the others wait for it.
  void connect_queue(const std::vector<size_t>& queue) {
    const Ticket first = table_[queue.front()].ticket();
    uint32_t before = operations_.at(queue.front());
    for (const size_t number : queue) {
      const uint32_t node = operations_.at(number);
      const Operation& operation = table_[number];
      const bool reached = operation.ticket() == first;
      if (!reached) {
        connect(node, before);
      }
      before = node;
      const LaneJournal& lane = table_.journal().lane(operation.rank, operation.lane.value);
      const RowLists lists = lane.lists_of(operation.row);
      for (const Ticket ticket : lists.after) {
        wait_for_ticket(node, operation.rank, ticket);
      }
      if (reached && nodes_[node].waits_for.empty()) {
        connect_peers(node, number);
      }
    }
    connect_parts(queue);
  }

  // A grouped call ends as one: a part whose partner has come waits for the parts that wait.
  void connect_parts(const std::vector<size_t>& queue) {
    std::vector<uint32_t> waiting;
    std::vector<uint32_t> exchanged;
    for (const size_t number : queue) {
      if (table_[number].ticket() == table_[queue.front()].ticket()) {
        const uint32_t node = operations_.at(number);
        (nodes_[node].waits_for.empty() ? exchanged : waiting).push_back(node);
      }
    }
    for (const uint32_t part : exchanged) {
      for (const uint32_t other : waiting) {
        connect(part, other);
      }
    }
  }

  void connect_peers(uint32_t node, size_t number) {
    const Operation& operation = table_[number];
    if (is_collective(operation.row.kind)) {
      const std::pair<uint64_t, int64_t> key{operation.communicator, operation.position};
      const auto known = calls_.find(key);
      connect(node, known != calls_.end() ? known->second : add_call(key, number));
    } else if (is_point_to_point(operation.row.kind)) {
      wait_for_partner(node, number);
    }
  }

  uint32_t add_call(const std::pair<uint64_t, int64_t>& key, size_t number) {
    const uint32_t call = add({WaitNode::Kind::call, table_[number].rank, {}, number, {}, false});
    calls_.emplace(key, call);
    RankSet missing = table_.members(key.first);
    RankSet present;
    for (const size_t part : table_.call(key.first, key.second)) {
      if (progress_.submitted[part] != 0) {
        present.add(table_[part].rank);
        wait_for_part(call, part);
      }
    }
    if (present != missing) {
      for (const int32_t rank : missing.ranks()) {
        if (!present.contains(rank)) {
          connect(call, lanes_.at({rank, LaneId{}}));
        }
      }
    }
    return call;
  }

  // A part that follows others in its queue, or behind its `after` list, has not come yet.
  void wait_for_part(uint32_t from, size_t part) {
    const auto node = operations_.find(part);
    if (node == operations_.end()) {
      return;
    }
    const auto& queue = progress_.queues.at({table_[part].rank, table_[part].row.stream});
    const RowLists lists = table_.journal()
                               .lane(table_[part].rank, table_[part].lane.value)
                               .lists_of(table_[part].row);
    const bool behind = table_[queue.front()].ticket() != table_[part].ticket();
    const bool input_missing = std::any_of(
        lists.after.begin(), lists.after.end(),
        [&](Ticket ticket) { return !progress_.ticket_done(table_, table_[part].rank, ticket); });
    if (behind || input_missing) {
      connect(from, node->second);
    }
  }

  void wait_for_partner(uint32_t node, size_t number) {
    const Operation& operation = table_[number];
    const size_t partner = table_.partner(number);
    if (partner != OperationTable::none && progress_.submitted[partner] != 0) {
      wait_for_part(node, partner);
      return;
    }
    const bool sends = operation.row.kind == OpKind::send;
    const int32_t peer = sends ? operation.row.peer : operation.source;
    if (peer != any_rank) {
      if (lanes_.contains({peer, LaneId{}})) {
        connect(node, lanes_.at({peer, LaneId{}}));
      }
      return;
    }
    for (const int32_t rank : table_.members(operation.communicator).ranks()) {
      if (rank != operation.rank) {
        connect(node, lanes_.at({rank, LaneId{}}));
      }
    }
  }

  const OperationTable& table_;
  const RunProgress& progress_;
  std::vector<WaitNode>& nodes_;
  std::map<std::pair<int32_t, LaneId>, uint32_t> lanes_;
  std::map<size_t, uint32_t> operations_;
  std::map<std::pair<uint64_t, int64_t>, uint32_t> calls_;
};

WaitGraph::WaitGraph(const OperationTable& table, const RunProgress& progress) {
  Builder(table, progress, nodes_).build();
}

namespace {

// The shortest way from a node of a component back to itself.
std::vector<uint32_t> cycle_through(const std::vector<WaitNode>& nodes,
                                    const std::vector<uint32_t>& component, uint32_t start) {
  const std::set<uint32_t> inside(component.begin(), component.end());
  std::map<uint32_t, uint32_t> reached_from;
  std::deque<uint32_t> open = {start};
  while (!open.empty()) {
    const uint32_t node = open.front();
    open.pop_front();
    for (const uint32_t next : nodes[node].waits_for) {
      if (next == start) {
        std::vector<uint32_t> cycle = {node};
        while (cycle.back() != start) {
          cycle.push_back(reached_from.at(cycle.back()));
        }
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (inside.contains(next) && reached_from.try_emplace(next, node).second) {
        open.push_back(next);
      }
    }
  }
  return {start};
}

}  // namespace

std::vector<WaitKnot> WaitGraph::knots() const {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
  Graph graph(nodes_.size());
  std::vector<char> waited_for(nodes_.size(), 0);
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    for (const uint32_t next : nodes_[node].waits_for) {
      boost::add_edge(node, next, graph);
      waited_for[next] = 1;
    }
  }
  std::vector<uint32_t> component(nodes_.size());
  const auto count = boost::strong_components(
      graph,
      boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
  std::vector<std::vector<uint32_t>> members(count);
  std::vector<char> waits_outside(count, 0);
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    members[component[node]].push_back(node);
    for (const uint32_t next : nodes_[node].waits_for) {
      waits_outside[component[node]] |= static_cast<char>(component[next] != component[node]);
    }
  }
  std::vector<WaitKnot> found;
  for (size_t number = 0; number < count; ++number) {
    const uint32_t first = members[number].front();
    const bool idle = members[number].size() == 1 && nodes_[first].kind == WaitNode::Kind::lane &&
                      waited_for[first] == 0;
    if (waits_outside[number] != 0 || idle) {
      continue;
    }
    WaitKnot knot{cycle_through(nodes_, members[number], first), members[number], {}};
    for (const uint32_t node : knot.nodes) {
      if (nodes_[node].kind != WaitNode::Kind::call) {
        knot.ranks.add(nodes_[node].rank);
      }
    }
    found.push_back(std::move(knot));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.nodes.front() < b.nodes.front(); });
  return found;
}

RankSet WaitGraph::ranks_waiting_for(const WaitKnot& knot) const {
  std::vector<std::vector<uint32_t>> waiters(nodes_.size());
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    for (const uint32_t next : nodes_[node].waits_for) {
      waiters[next].push_back(node);
    }
  }
  std::vector<char> seen(nodes_.size(), 0);
  std::deque<uint32_t> open(knot.nodes.begin(), knot.nodes.end());
  for (const uint32_t node : knot.nodes) {
    seen[node] = 1;
  }
  RankSet ranks;
  while (!open.empty()) {
    const uint32_t node = open.front();
    open.pop_front();
    for (const uint32_t waiter : waiters[node]) {
      if (seen[waiter] == 0) {
        seen[waiter] = 1;
        open.push_back(waiter);
        ranks.add(nodes_[waiter].rank);
      }
    }
  }
  return ranks;
}

}  // namespace lockstep
