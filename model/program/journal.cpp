#include "model/program/journal.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "model/core/random.hpp"

namespace lockstep {

Journal::Journal(int32_t ranks, const JournalOptions& options,
                 std::shared_ptr<const RankClasses> classes)
    : groups(static_cast<size_t>(ranks), classes),
      options_(options),
      classes_(classes),
      memory_(std::make_unique<ChunkMemory>(options.store, options.resident_bytes_max)),
      lanes_(static_cast<size_t>(ranks), std::move(classes)) {
  for (auto& lanes_of_rank : lanes_.distinct()) {
    lanes_of_rank.push_back(std::make_unique<LaneJournal>(memory_.get()));
  }
}

std::vector<int32_t> Journal::own_ranks() const {
  std::vector<int32_t> ranks;
  for (size_t place = 0; place < lanes_.distinct().size(); ++place) {
    ranks.push_back(static_cast<int32_t>(lanes_.first_of(place)));
  }
  return ranks;
}

int32_t Journal::lanes(int32_t rank) const {
  return static_cast<int32_t>(lanes_[static_cast<size_t>(rank)].size());
}

void Journal::name_own_groups() {
  if (classes_ == nullptr || !classes_->have_neighbours()) {
    return;
  }
  ByRank<std::vector<Membership>> own(classes_->ranks());
  for (size_t rank = 0; rank < own.size(); ++rank) {
    own[rank] = groups_of(static_cast<int32_t>(rank));
  }
  groups = std::move(own);
}

namespace {

// Of a group, the member with the same place among those of its class as `named` has in a group
// that stands for it.
int32_t counterpart(const RankClasses& classes, const std::vector<int32_t>& standing,
                    const std::vector<int32_t>& own, int32_t named) {
  const size_t number = classes.of(static_cast<size_t>(named));
  const auto of_class = [&](const std::vector<int32_t>& members) {
    std::vector<int32_t> alike;
    std::ranges::copy_if(members, std::back_inserter(alike), [&](int32_t member) {
      return classes.of(static_cast<size_t>(member)) == number;
    });
    return alike;
  };
  const std::vector<int32_t> before = of_class(standing);
  const std::vector<int32_t> after = of_class(own);
  const auto place = std::ranges::find(before, named) - before.begin();
  return place < std::ssize(before) && before.size() == after.size()
             ? after[static_cast<size_t>(place)]
             : named;
}

}  // namespace

Row Journal::meant_by(int32_t rank, Row row) const {
  const bool names_rank = row.row == RowKind::op && row.peer >= 0 &&
                          (is_point_to_point(row.kind) || has_root(row.kind));
  if (!names_rank || classes_ == nullptr || !classes_->have_neighbours()) {
    return row;
  }
  const auto members_of = [&](int32_t of) {
    const std::vector<Membership>& known = groups[static_cast<size_t>(of)];
    return row.group.value < known.size() ? known[row.group.value].members.ranks()
                                          : std::vector<int32_t>();
  };
  row.peer = is_point_to_point(row.kind)
                 ? classes_->meant_by(rank, row.peer)
                 : counterpart(*classes_, members_of(own_rank(rank)), members_of(rank), row.peer);
  return row;
}

// Groups that the rank is in; of others nobody asks.
std::vector<Membership> Journal::groups_of(int32_t rank) const {
  const auto at = static_cast<size_t>(rank);
  const int32_t running = classes_->first(classes_->of(at));
  if (running == rank) {
    return groups[at];
  }
  std::vector<Membership> own;
  for (size_t number = 0; number < groups[at].size(); ++number) {
    const Membership& of_running = groups[at][number];
    if (std::ranges::find(of_running.members, running) == of_running.members.end()) {
      continue;
    }
    own.resize(number + 1);
    own[number] = of_running;
    const std::vector<int32_t> members = classes_->group_meant_by(rank, of_running.members.ranks());
    if (members != of_running.members.ranks()) {
      own[number] = {communicator_key(of_running.communicator, 0, members), MemberList(members)};
    }
  }
  return own;
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
    lanes_of_rank.push_back(std::make_unique<LaneJournal>(memory_.get()));
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
  if (options_.follower != nullptr) [[unlikely]] {
    options_.follower->appended(lane, row, rows.lists_of(row));
  }
}

// A lane that came after all that was left out repeats nothing of it.
std::span<const RepeatedRows> Journal::repeated_on(int32_t rank, int32_t lane) const {
  const auto at = static_cast<size_t>(rank);
  if (repeated.empty()) {
    return {};
  }
  if (lane == 0) {
    return repeated[at];
  }
  const auto beside = static_cast<size_t>(lane - 1);
  return beside < repeated_beside[at].size() ? std::span(repeated_beside[at][beside])
                                             : std::span<const RepeatedRows>();
}

std::vector<int64_t> times_repeated(std::span<const RepeatedRows> repeated,
                                    const std::function<int64_t(const RepeatedRows&)>& count) {
  std::vector<int64_t> times(repeated.size(), 0);
  for (size_t at = 0; at < repeated.size(); ++at) {
    int64_t of_period = count(repeated[at]);
    for (int64_t inner = repeated[at].first_inner; inner < repeated[at].end_inner; ++inner) {
      of_period += times[static_cast<size_t>(inner)];
    }
    times[at] = of_period * repeated[at].periods;
  }
  return times;
}

Row row_of(const Op& op, Ticket ticket) {
  Row row;
  row.kind = op.kind;
  row.dtype = op.dtype;
  row.reduction = op.reduction;
  row.stream = op.stream;
  row.kernel = op.kernel;
  row.group = op.group;
  // A colour by a rule is another on each rank, of which one may run for others; the splits say it.
  const bool follows_rule = (op.flags & flag_color) != 0 && !op.list().splits.empty();
  row.peer = follows_rule ? no_color : op.peer;
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
