#include "sim/collectives.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "model/network/execute.hpp"
#include "sim/new_groups.hpp"

namespace lockstep::sim {

Collectives::Collectives(const RunOptions& options, std::vector<RankState>& ranks,
                         InFlight& in_flight, Communicators& communicators, Journal* journal,
                         std::string& ranks_differ)
    : options_(options),
      ranks_(ranks),
      in_flight_(in_flight),
      communicators_(communicators),
      journal_(journal),
      ranks_differ_(ranks_differ) {}

void Collectives::enter(RankState& rank, Part& part) {
  ensure(part.op.group.value < rank.groups.size(), "a group is used after it was made");
  GroupState& group = rank.groups[part.op.group.value];
  part.call = group.next_call++;
  part.member = group.member;
}

std::optional<Transfer> Collectives::arrive(uint32_t index) {
  Part& part = in_flight_[index];
  const GroupState& group = ranks_[part.rank].groups[part.op.group.value];
  if (part.member < 0) {
    return std::nullopt;  // not a member of the group it names: nobody will ever answer
  }
  Communicator& communicator = communicators_[group.communicator];
  CallSlot& here = communicator.slot(part.call);
  // In the order in which they arrive: who comes first goes on first, also in the next call.
  (here.members == no_index ? here.members : in_flight_[here.last].next) = index;
  here.last = index;
  here.latest = std::max(here.latest, part.ready);
  here.arrived += group.stands_for;
  if (here.arrived != communicators_.members_of(communicator).size()) {
    return std::nullopt;
  }
  const bool goes_on = fits(here);
  const Transfer content{here.latest, here.members, no_index, true};
  retire_calls(communicator);
  return goes_on ? std::optional(content) : std::nullopt;
}

void Collectives::retire_calls(Communicator& communicator) {
  const size_t all = communicators_.members_of(communicator).size();
  while (!communicator.window.empty() && communicator.window.front().arrived == all) {
    communicator.window.pop_front();
    ++communicator.first_call;
  }
}

namespace {

// The properties that must agree for a call to complete at all. Reduction and type may differ: then
// it completes, and every member makes its own of the bytes.
bool same_shape(const Op& a, const Op& b) {
  if (a.kind != b.kind || a.bytes != b.bytes || (has_root(a.kind) && a.peer != b.peer)) {
    return false;
  }
  const auto x = a.list().splits;
  const auto y = b.list().splits;
  return a.kind != OpKind::reduce_scatter || std::equal(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace

// Each must send to a peer what that peer expects from it.
bool Collectives::amounts_fit(const CallSlot& here, const std::vector<int32_t>& members) {
  std::vector<const Part*> by_member;
  bool split = false;
  for (const uint32_t index : parts_by_member(here.members, members)) {
    by_member.push_back(&in_flight_[index]);
    split = split || !in_flight_[index].op.list().splits.empty();
  }
  const auto amount = [&](const Part& part, size_t peer, bool receives) {
    const auto splits = part.op.list().splits;
    const int64_t part_elements = part.op.elements() / static_cast<int64_t>(here.arrived);
    const int64_t elements =
        splits.empty() ? part_elements : splits[receives ? here.arrived + peer : peer];
    return elements * size_of(part.op.dtype);
  };
  if (!split) {
    return std::ranges::all_of(by_member, [&](const Part* part) {
      return amount(*part, 0, false) == amount(*by_member.front(), 0, false);
    });
  }
  if (std::ranges::any_of(by_member, [&](const Part* part) { return members_of(*part) > 1; })) {
    ranks_differ_ = "an all_to_all says what each rank gets";
  }
  for (size_t a = 0; a < by_member.size(); ++a) {
    for (size_t b = 0; b < by_member.size(); ++b) {
      if (amount(*by_member[a], b, false) != amount(*by_member[b], a, true)) {
        return false;
      }
    }
  }
  return true;
}

std::vector<uint32_t> Collectives::parts_by_member(uint32_t first,
                                                   const std::vector<int32_t>& members) {
  std::vector<uint32_t> by_member(members.size());
  if (options_.classes == nullptr) {
    for (uint32_t index = first; index != no_index; index = in_flight_[index].next) {
      by_member[static_cast<size_t>(in_flight_[index].member)] = index;
    }
    return by_member;
  }
  std::vector<uint32_t> by_class(ranks_.size());
  for (uint32_t index = first; index != no_index; index = in_flight_[index].next) {
    by_class[in_flight_[index].rank] = index;
  }
  std::ranges::transform(members, by_member.begin(), [&](int32_t rank) {
    return by_class[options_.classes->of(static_cast<size_t>(rank))];
  });
  return by_member;
}

uint32_t Collectives::members_of(const Part& part) const {
  return ranks_[part.rank].groups[part.op.group.value].stands_for;
}

// Whether nobody else of the call is of the class of this rank.
bool Collectives::is_alone(int32_t rank, const CallSlot& here) {
  if (options_.classes == nullptr) {
    return true;
  }
  const size_t number = options_.classes->of(static_cast<size_t>(rank));
  for (uint32_t index = here.members; index != no_index; index = in_flight_[index].next) {
    if (in_flight_[index].rank == number) {
      return members_of(in_flight_[index]) == 1;
    }
  }
  return false;
}

bool Collectives::fits(const CallSlot& here) {
  const Part& part = in_flight_[here.members];
  const Op& first = part.op;
  const std::vector<int32_t>& members =
      communicators_.members_of(communicators_.of(ranks_[part.rank], part));
  if (has_root(first.kind)) {
    if (std::find(members.begin(), members.end(), first.peer) == members.end()) {
      return false;  // the root is not in the group
    }
    // What is broadcast lies in the same place on the root and on the others.
    if (first.kind != OpKind::broadcast && !is_alone(first.peer, here)) {
      ranks_differ_ = "a rank is the root of a collective";
    }
  }
  for (uint32_t index = here.members; index != no_index; index = in_flight_[index].next) {
    if (in_flight_[index].op.kind != first.kind) {
      return false;
    }
  }
  if (first.kind == OpKind::all_to_all) {
    return amounts_fit(here, members);
  }
  for (uint32_t index = here.members; index != no_index; index = in_flight_[index].next) {
    if (!same_shape(first, in_flight_[index].op)) {
      return false;
    }
  }
  return true;
}

void Collectives::complete(const Transfer& call, Time finish) {
  const uint32_t first = call.first;
  const Part& any = in_flight_[first];
  const Communicator& communicator = communicators_.of(ranks_[any.rank], any);
  const bool makes_groups = any.op.kind == OpKind::new_group;
  bool valued = false;
  for (uint32_t index = first; index != no_index; index = in_flight_[index].next) {
    valued = valued || !in_flight_[index].op.list().writes.empty();
  }
  if (makes_groups || valued) {
    const std::vector<int32_t>& members = communicators_.members_of(communicator);
    if (makes_groups) {
      make_groups(parts_by_member(first, members), communicator);
    } else {
      exchange_values(parts_by_member(first, members), members);
    }
  }
  const size_t before = in_flight_.ready_count();
  for (uint32_t index = first; index != no_index;) {
    const uint32_t next = in_flight_[index].next;
    in_flight_.finish_part(index, call.start, finish);
    index = next;
  }
  in_flight_.launch_in_order_behind(before);
}

using Splits = std::vector<std::span<const int64_t>>;

namespace {

// What is made once for all members takes at most.
Bytes whole_bytes(OpKind kind, const std::vector<const Values*>& contributions) {
  const bool joins = kind == OpKind::all_gather || kind == OpKind::gather;
  Bytes bytes{};
  for (const Values* const values : contributions) {
    bytes = joins ? bytes + values->byte_size() : std::max(bytes, values->byte_size());
  }
  return bytes;
}

/// The parts of a call, each once, and what their ranks give to it.
struct Inputs {
  std::vector<uint32_t> parts;
  std::vector<SharedValues> values;  ///< by place in `parts`
  std::vector<uint32_t> of_member;   ///< places in `parts`
  bool is_uneven = false;            ///< some part says what each member gets

  bool are_empty() const {
    return std::ranges::all_of(values, [](const SharedValues& each) { return each->empty(); });
  }
  void add(uint32_t index, const Part& part, const std::vector<RankState>& ranks) {
    const OpLists& lists = part.op.list();
    parts.push_back(index);
    values.push_back(lists.reads.empty() ? std::make_shared<const Values>()
                                         : ranks[part.rank].buffers->share(lists.reads[0]));
    is_uneven = is_uneven || !lists.splits.empty();
  }
};

// `shared`: a part may be that of several members.
Inputs inputs_of(const std::vector<uint32_t>& by_member, InFlight& parts,
                 const std::vector<RankState>& ranks, bool shared) {
  Inputs inputs;
  inputs.of_member.reserve(by_member.size());
  std::vector<uint32_t> place_of_rank(shared ? ranks.size() : 0, no_index);
  for (const uint32_t index : by_member) {
    const Part& part = parts[index];
    if (shared && place_of_rank[part.rank] != no_index) {
      inputs.of_member.push_back(place_of_rank[part.rank]);
      continue;
    }
    const auto place = static_cast<uint32_t>(inputs.parts.size());
    inputs.add(index, part, ranks);
    inputs.of_member.push_back(place);
    if (shared) {
      place_of_rank[part.rank] = place;
    }
  }
  return inputs;
}

}  // namespace

void Collectives::exchange_values(const std::vector<uint32_t>& by_member,
                                  const std::vector<int32_t>& members) {
  const Inputs inputs = inputs_of(by_member, in_flight_, ranks_, options_.classes != nullptr);
  if (inputs.are_empty()) {
    return;  // nothing is written where nothing is read
  }
  std::vector<const Values*> contributions;
  contributions.reserve(by_member.size());
  for (const uint32_t place : inputs.of_member) {
    contributions.push_back(inputs.values[place].get());
  }
  Splits splits;
  for (size_t member = 0; inputs.is_uneven && member < by_member.size(); ++member) {
    splits.push_back(in_flight_[by_member[member]].op.list().splits);
  }
  const int32_t peer = in_flight_[by_member.front()].op.peer;
  const auto root = std::find(members.begin(), members.end(), peer) - members.begin();
  // Results that members share are computed once, for each way of reading and reducing the bytes.
  std::map<std::pair<DType, Reduction>, SharedValues> wholes;
  for (const uint32_t index : inputs.parts) {
    const Part& part = in_flight_[index];
    if (part.op.list().writes.empty()) {
      continue;
    }
    const Slice& output = part.op.list().writes[0];
    BufferTable& buffers = *ranks_[part.rank].buffers;
    const CollectiveInputs gathered{contributions, part.member, root};
    if (part.op.kind == OpKind::all_to_all) {
      buffers.store(output, collective_result(part.op, options_.average_order, gathered, splits));
      continue;
    }
    const auto [place, fresh] = wholes.try_emplace({part.op.dtype, part.op.reduction});
    if (fresh) {
      place->second = charged(options_.value_budget, whole_bytes(part.op.kind, contributions), [&] {
        return collective_whole(part.op, options_.average_order, gathered);
      });
    }
    const SharedValues& whole = place->second;
    if (gives_whole(part.op.kind)) {
      buffers.store_shared(output, whole);
    } else {
      buffers.store(output, collective_share(part.op, *whole, gathered));
    }
  }
}

// A group of some ranks of a class is another group for the others of it, of which it must be known
// that they do the same.
GroupState Collectives::group_state(const RankState& rank, uint32_t communicator, int32_t member) {
  GroupState state{communicator, member, 0, 1, false};
  const RankClasses* const classes = options_.classes.get();
  if (classes == nullptr) {
    return state;
  }
  if (member < 0 && classes->exchange_with_neighbours()) {
    state.stands_for = 0;
    return state;
  }
  const GroupOfClasses group =
      classes->group_of(rank.index, communicators_.members_of(communicators_[communicator]));
  if (!group.stands_for_all) {
    ranks_differ_ = "a group has some of the ranks that do the same";
  }
  state.stands_for = group.of_class;
  state.is_of_neighbours = group.is_of_neighbours;
  return state;
}

namespace {

// A part may stand for several members, whose colours then follow from a rule.
int32_t color_of(const Part& part, int32_t rank) {
  const auto rule = part.op.list().splits;
  return rule.empty() ? part.op.peer : ColorRule{rule[0], rule[1]}.of(rank);
}

}  // namespace

void Collectives::make_groups(const std::vector<uint32_t>& by_member, const Communicator& parent) {
  NewGroups made(parent.key, in_flight_[by_member.front()].call);
  const std::vector<int32_t>& members = communicators_.members_of(parent);
  for (size_t member = 0; member < by_member.size(); ++member) {
    const Part& part = in_flight_[by_member[member]];
    const bool is_colored = (part.op.flags & flag_color) != 0;
    const int32_t color = is_colored ? color_of(part, members[member]) : no_color;
    if (color != no_color) {
      made.add_to_color(color, members[member]);
    }
  }
  for (size_t member = 0; member < by_member.size(); ++member) {
    const Part& part = in_flight_[by_member[member]];
    if (static_cast<size_t>(part.member) != member) {
      continue;  // another stands for it
    }
    const bool colored = (part.op.flags & flag_color) != 0;
    const NewGroups::Made& own = !colored                   ? made.of_list(part.op.list().splits)
                                 : part.op.peer == no_color ? made.of_list({})
                                                            : made.of_color(part.op.peer);
    const auto number = static_cast<size_t>(part.op.tag);
    if (journal_ != nullptr) {
      auto& known = journal_->groups[static_cast<size_t>(members[member])];
      known.resize(std::max(known.size(), number + 1));
      known[number] = {own.key, own.members};
    }
    RankState& rank = ranks_[part.rank];
    rank.groups.resize(std::max(rank.groups.size(), number + 1));
    rank.groups[number] = group_state(rank, communicators_.find_or_make(own.key, own.members),
                                      own.member_of(members[member]));
  }
}

}  // namespace lockstep::sim
