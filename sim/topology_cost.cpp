#include "sim/topology_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/alike_columns.hpp"
#include "sim/plain_cost.hpp"
#include "sim/uneven_links.hpp"

namespace lockstep::sim {

namespace {

// One of `parts` equal parts, rounded up to a whole byte.
Bytes part_of(Bytes bytes, int64_t parts) { return Bytes((bytes.count() + parts - 1) / parts); }

bool is_all_reduce_like(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::barrier;
}

}  // namespace

PlacementResult place_ranks(const Cluster& cluster, int32_t world_size, int32_t ranks_per_node,
                            int32_t devices_per_rank, const RanksOfNodes& ranks_of_nodes) {
  std::vector<int> free_places;
  for (int place = 0; place < cluster.node.devices; ++place) {
    if (std::find(cluster.occupied.begin(), cluster.occupied.end(), place) ==
        cluster.occupied.end()) {
      free_places.push_back(place);
    }
  }
  const auto fit = static_cast<int32_t>(free_places.size()) / devices_per_rank;
  const bool is_uneven = !ranks_of_nodes.empty();
  const int32_t per_node = is_uneven            ? std::ranges::max(ranks_of_nodes)
                           : ranks_per_node > 0 ? ranks_per_node
                                                : fit;
  const bool has_room = is_uneven ? std::ssize(ranks_of_nodes) <= cluster.nodes
                                  : int64_t{per_node} * cluster.nodes >= world_size;
  if (per_node > fit || !has_room) {
    return {
        {},
        {{fmt::format("{} ranks of {} device(s), {}{} per node, do not fit on {} node(s) with {} "
                      "free device(s) each",
                      world_size, devices_per_rank, is_uneven ? "up to " : "", per_node,
                      cluster.nodes, free_places.size()),
          "ask for fewer devices, or give the cluster more nodes or GPUs"}}};
  }
  PlacementResult result;
  result.placement.devices_per_rank = devices_per_rank;
  result.placement.devices.reserve(static_cast<size_t>(world_size) *
                                   static_cast<size_t>(devices_per_rank));
  for (int32_t rank = 0; rank < world_size; ++rank) {
    const PositionOnNode position =
        is_uneven ? position_on_node(ranks_of_nodes, rank)
                  : PositionOnNode{rank / per_node, rank % per_node, per_node};
    for (int32_t number = 0; number < devices_per_rank; ++number) {
      const int32_t slot = position.local_rank * devices_per_rank + number;
      const int place = free_places[static_cast<size_t>(slot)];
      result.placement.devices.push_back(
          DeviceNumber{static_cast<uint32_t>(position.node * cluster.node.devices + place)});
    }
  }
  return result;
}

TopologyCommunicationCost::TopologyCommunicationCost(const Cluster& cluster, Placement placement,
                                                     CollectiveAlgorithms algorithms,
                                                     DeviceModel host, const RunningRanks& running)
    : topology_(cluster),
      placement_(std::move(placement)),
      algorithms_(algorithms),
      device_(cluster.node.device),
      host_(std::move(host)),
      devices_per_node_(cluster.node.devices),
      classes_(running.classes),
      drive_latency_(cluster.node.latencies.drive) {
  const bool folds_links =
      running.folds_links && classes_ != nullptr && algorithms != CollectiveAlgorithms::gloo &&
      placement_.devices_per_rank == 1 && !classes_->exchange_with_neighbours();
  if (folds_links) {
    alike_ = AlikeNodes::of(placement_.devices, topology_, *classes_);
  }
  const int64_t nodes = alike_ ? static_cast<int64_t>(alike_->size()) : topology_.nodes();
  const int64_t links = links_per_node();
  capacities_.reserve(static_cast<size_t>((links + 2) * nodes));
  for (int64_t link = 0; link < links * nodes; ++link) {
    capacities_.push_back(topology_.link(LinkId{static_cast<uint32_t>(link)}).bandwidth);
  }
  add_drives(cluster.node, nodes);
}

void TopologyCommunicationCost::add_drives(const NodeModel& node, int64_t nodes) {
  const auto rate = [&node](BytesPerSecond own) {
    return own > BytesPerSecond{} ? own : node.disk;
  };
  for (int64_t place = 0; place < nodes; ++place) {
    for (const bool writes : {false, true}) {
      const BytesPerSecond capacity = rate(writes ? node.nvme.write : node.nvme.read);
      if (capacity > BytesPerSecond{}) {
        drives_[{place, writes}] = static_cast<LinkIndex>(capacities_.size());
        capacities_.push_back(capacity);
      }
    }
  }
}

TransferPlan TopologyCommunicationCost::collective(const CollectiveCall& call) {
  if (call.members.size() < 2) {
    return {};
  }
  if (algorithms_ == CollectiveAlgorithms::gloo) {
    return plan(call, gloo_choice(call));
  }
  const TransferPlan ring = over_rings(call);
  if (algorithms_ == CollectiveAlgorithms::ring || !is_all_reduce_like(call.kind)) {
    return ring;
  }
  const TransferPlan tree = over_trees(call);
  const bool ring_is_sooner =
      algorithms_ == CollectiveAlgorithms::nccl && time_alone(ring) <= time_alone(tree);
  return ring_is_sooner ? ring : tree;
}

TransferPlan TopologyCommunicationCost::over_trees(const CollectiveCall& call) {
  const Bytes bytes = call.kind == OpKind::barrier ? Bytes(4) : call.bytes;
  return plan(call, {Shape::double_tree, bytes});
}

TopologyCommunicationCost::Choice TopologyCommunicationCost::ring_choice(
    const CollectiveCall& call) const {
  const auto members = static_cast<int64_t>(call.members.size());
  switch (call.kind) {
    case OpKind::all_to_all: return {Shape::pairwise, part_of(call.bytes, members)};
    case OpKind::gather: return {Shape::to_root, call.bytes};
    case OpKind::scatter: return {Shape::from_root, call.bytes};
    default: {
      const Shape shape = is_all_reduce_like(call.kind) ? Shape::ring_twice : Shape::ring_once;
      return {shape, ring_volume(call.kind, call.bytes, members).bytes};
    }
  }
}

TopologyCommunicationCost::Choice TopologyCommunicationCost::gloo_choice(
    const CollectiveCall& call) const {
  const auto members = static_cast<int64_t>(call.members.size());
  switch (call.kind) {
    case OpKind::broadcast: return {Shape::binomial, call.bytes};
    case OpKind::reduce: return {Shape::reduce_to_root, part_of(call.bytes, members)};
    case OpKind::barrier: return {Shape::dissemination, Bytes{}};
    default: return ring_choice(call);
  }
}

TransferPlan TopologyCommunicationCost::plan(const CollectiveCall& call, const Choice& choice) {
  const TrafficPattern& traffic = pattern(call, choice.shape);
  return plan_over(traffic, part_of(choice.volume, traffic.parts));
}

const TrafficPattern& TopologyCommunicationCost::pattern(const CollectiveCall& call, Shape shape) {
  const bool rooted = shape == Shape::binomial || shape == Shape::to_root ||
                      shape == Shape::from_root || shape == Shape::reduce_to_root;
  const auto key = std::make_tuple(latencies_, call.communicator, shape, rooted ? call.root : -1);
  const auto known = patterns_.find(key);
  return known != patterns_.end() ? known->second
                                  : patterns_.emplace(key, make_pattern(call, shape)).first->second;
}

std::optional<TrafficPattern> TopologyCommunicationCost::pattern_of_alike(
    const CollectiveCall& call, Shape shape) {
  const auto steps = static_cast<int64_t>(call.members.size()) - 1;
  if (call.members.size() == placement_.devices.size()) {
    switch (shape) {
      case Shape::ring_once: return alike_->ring(topology_, steps);
      case Shape::ring_twice: return alike_->ring(topology_, 2 * steps);
      case Shape::double_tree: return alike_->double_tree(topology_);
      default: break;
    }
  }
  is_exact_ = false;
  return std::nullopt;
}

TrafficPattern TopologyCommunicationCost::make_pattern(const CollectiveCall& call, Shape shape) {
  if (alike_) {
    TrafficPattern of_all = pattern_of_alike(call, shape).value_or(TrafficPattern());
    if (classes_->have_columns()) {
      of_all.uneven_columns =
          links_uneven_between_columns(of_all, capacities_, links_per_node(),
                                       [this](int64_t) { return alike_->ranks_per_node(); });
    }
    return of_all;
  }
  TrafficPattern made = pattern_between(call.members, call.root, shape);
  if (classes_ != nullptr) {
    made.uneven = uneven_links(made, call.members, topology_, placement_, *classes_);
    const auto root = std::ranges::find(call.members, call.root) - call.members.begin();
    note_columns(call.members, made, [&](std::span<const int32_t> members) {
      const bool has_root = root < std::ssize(members);
      return pattern_between(members, has_root ? members[static_cast<size_t>(root)] : -1, shape);
    });
  }
  return made;
}

// `pattern_of`: from the members in another column, in the same order, to what they cross.
template <class PatternOf>
void TopologyCommunicationCost::note_columns(std::span<const int32_t> members,
                                             TrafficPattern& pattern, const PatternOf& pattern_of) {
  if (classes_ == nullptr || !classes_->have_columns()) {
    return;
  }
  std::vector<TrafficPattern> others;
  for (const std::vector<int32_t>& other : classes_->other_columns(members)) {
    others.push_back(pattern_of(other));
  }
  are_columns_alike_ = are_columns_alike_ && add_other_columns(others, capacities_, pattern);
  if (others.empty()) {
    std::map<int64_t, size_t> members_of_node;
    for (const int32_t rank : members) {
      ++members_of_node[placement_.device(rank).value / devices_per_node_];
    }
    pattern.uneven_columns = links_uneven_between_columns(
        pattern, capacities_, links_per_node(), [&members_of_node](int64_t node) {
          const auto found = members_of_node.find(node);
          return found == members_of_node.end() ? size_t{0} : found->second;
        });
  }
}

TrafficPattern TopologyCommunicationCost::pattern_between(std::span<const int32_t> ranks,
                                                          int32_t root_rank, Shape shape) {
  std::vector<DeviceNumber> devices;
  for (const int32_t rank : ranks) {
    devices.push_back(placement_.device(rank));
  }
  const Members members{devices, devices_per_node_};
  const auto steps = static_cast<int64_t>(devices.size()) - 1;
  const auto root =
      static_cast<size_t>(std::find(ranks.begin(), ranks.end(), root_rank) - ranks.begin());
  switch (shape) {
    case Shape::ring_once: return ring_pattern(topology_, members, steps);
    case Shape::ring_twice: return ring_pattern(topology_, members, 2 * steps);
    case Shape::double_tree: return double_tree_pattern(topology_, members);
    case Shape::binomial: return binomial_pattern(topology_, members, root);
    case Shape::to_root: return linear_pattern(topology_, members, root, true);
    case Shape::from_root: return linear_pattern(topology_, members, root, false);
    case Shape::reduce_to_root: return ring_and_gather_pattern(topology_, members, root);
    case Shape::pairwise: return pairwise_pattern(topology_, members);
    case Shape::dissemination: return dissemination_pattern(topology_, members);
  }
  return {};
}

Time TopologyCommunicationCost::time_alone(const TransferPlan& plan) const {
  Time slowest;
  for (size_t place = 0; place < plan.links->size(); ++place) {
    slowest =
        std::max(slowest, plan.volume * (*plan.weights)[place] / capacities_[(*plan.links)[place]]);
  }
  return plan.latency + slowest;
}

LinkIndex TopologyCommunicationCost::number_of(LinkId link) {
  if (!alike_) {
    return link.value;
  }
  is_exact_ = is_exact_ && alike_->is_alone(topology_.node_of(link));
  return alike_->number_of(link);
}

TopologyCommunicationCost::Route TopologyCommunicationCost::route_of(
    const std::vector<LinkId>& links) {
  Route route;
  route.latency = topology_.latency(links);
  for (const LinkId link : links) {
    route.links.push_back(number_of(link));
  }
  route.weights.assign(route.links.size(), 1);
  return route;
}

const TopologyCommunicationCost::Route& TopologyCommunicationCost::route_between(
    DeviceNumber from, DeviceNumber to, std::span<const int32_t> ranks) {
  const auto key = std::make_tuple(latencies_, from.value, to.value);
  const auto known = routes_.find(key);
  if (known != routes_.end()) {
    return known->second;
  }
  Route route = route_of(topology_.route(from, to));
  note_columns(ranks, route, [this](std::span<const int32_t> members) {
    return route_of(
        topology_.route(placement_.device(members.front()), placement_.device(members.back())));
  });
  return routes_.emplace(key, std::move(route)).first->second;
}

namespace {

template <class List>
const List* if_any(const List& list) {
  return list.empty() ? nullptr : &list;
}

}  // namespace

TransferPlan TopologyCommunicationCost::plan_over(const TrafficPattern& traffic, Bytes volume) {
  TransferPlan plan{traffic.latency, volume, &traffic.links, &traffic.weights,
                    if_any(traffic.uneven)};
  plan.with_columns = if_any(traffic.with_columns);
  plan.columns = traffic.columns;
  plan.uneven_columns = if_any(traffic.uneven_columns);
  return plan;
}

void TopologyCommunicationCost::add_latency(LinkIndex link, Time latency) {
  is_exact_ = is_exact_ && !alike_;
  topology_.add_latency(LinkId{link}, latency);
  ++latencies_;
}

TransferPlan TopologyCommunicationCost::point_to_point(int32_t source, int32_t destination,
                                                       Bytes bytes) {
  return plan_over(route_between(placement_.device(source), placement_.device(destination),
                                 std::to_array({source, destination})),
                   bytes);
}

TopologyCommunicationCost::Route TopologyCommunicationCost::route_to_drive(int32_t rank,
                                                                           bool writes) {
  const int64_t node = placement_.device(rank).value / devices_per_node_;
  const auto place = alike_ ? static_cast<int64_t>(alike_->class_of(node)) : node;
  is_exact_ = is_exact_ && (!alike_ || alike_->is_alone(node));
  Route route;
  route.latency = drive_latency_;
  const auto found = drives_.find({place, writes});
  if (found != drives_.end()) {
    route.links.push_back(found->second);
    route.weights.push_back(1);
  }
  return route;
}

TransferPlan TopologyCommunicationCost::with_drive(int32_t rank, bool writes, Bytes bytes) {
  auto known = drive_routes_.find({rank, writes});
  if (known == drive_routes_.end()) {
    Route own = route_to_drive(rank, writes);
    note_columns(std::to_array({rank}), own, [&](std::span<const int32_t> ranks) {
      return route_to_drive(ranks.front(), writes);
    });
    known = drive_routes_.emplace(std::pair(rank, writes), std::move(own)).first;
  }
  return plan_over(known->second, bytes);
}

TransferPlan TopologyCommunicationCost::copy(int32_t rank, DeviceId from, DeviceId to,
                                             Bytes bytes) {
  if (from == drive_device || to == drive_device) {
    return with_drive(rank, to == drive_device, bytes);
  }
  if (from == to) {
    const DeviceModel& memory = from == host_device ? host_ : device_;
    return {roofline_time(memory, DType::uint8, Flops{}, bytes * 2), {}, nullptr, nullptr};
  }
  if (from != host_device && to != host_device) {
    return plan_over(
        route_between(placement_.device(rank, from.value), placement_.device(rank, to.value), {}),
        bytes);
  }
  const bool to_host = to == host_device;
  const DeviceNumber device = placement_.device(rank, to_host ? from.value : to.value);
  const auto key = std::make_tuple(latencies_, device.value, to_host);
  auto known = host_routes_.find(key);
  if (known == host_routes_.end()) {
    const auto route = [&](DeviceNumber place) {
      return route_of(to_host ? topology_.route_to_host(place) : topology_.route_from_host(place));
    };
    Route own = route(device);
    note_columns(std::to_array({rank}), own, [&](std::span<const int32_t> ranks) {
      return route(placement_.device(ranks.front()));
    });
    known = host_routes_.emplace(key, std::move(own)).first;
  }
  return plan_over(known->second, bytes);
}

}  // namespace lockstep::sim
