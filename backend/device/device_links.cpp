#include "backend/device/device_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

bool is_member(const std::vector<int32_t>& members, int32_t rank) {
  return std::ranges::find(members, rank) != members.end();
}

}  // namespace

DeviceLinks::DeviceLinks(Device& device, int32_t rank, int32_t world_size)
    : device_(device), rank_(rank) {
  DeviceGroup& world = groups_[world_group];
  world.members.resize(static_cast<size_t>(world_size));
  std::iota(world.members.begin(), world.members.end(), 0);
}

DeviceGroup& DeviceLinks::group(GroupId id) {
  const auto found = groups_.find(id);
  ensure(found != groups_.end(), "a group is used once its new_group has settled");
  return found->second;
}

const DeviceGroup& DeviceLinks::make_group(GroupId id, uint64_t key, std::vector<int32_t> members) {
  DeviceGroup& made = groups_[id];
  made.members = std::move(members);
  made.key = key;
  return made;
}

bool DeviceLinks::is_answered(const Op& op, const DeviceGroup& group) const {
  const bool names_another = is_point_to_point(op.kind) || has_root(op.kind);
  return is_member(group.members, rank_) && (!names_another || is_member(group.members, op.peer));
}

// Point-to-point has a link of its own for each group, direction and tag, so that messages wait for
// their own partner alone; a link of the library knows no tags and one order for all it carries.
Link& DeviceLinks::of(const Op& op, const DeviceGroup& group) {
  std::string name = fmt::format("{:016x}", group.key);
  std::vector<int32_t> members = group.members;
  if (is_point_to_point(op.kind)) {
    members = op.kind == OpKind::send ? std::vector{rank_, op.peer} : std::vector{op.peer, rank_};
    name += fmt::format("/{}-{}/{}", members[0], members[1], op.tag);
    if (op.peer == rank_) {
      members.pop_back();
    }
  }
  const auto [found, is_new] = links_.try_emplace(name);
  Link& link = found->second;
  if (is_new) {
    link.name = std::move(name);
    link.members = std::move(members);
    link.side_stream = side_streams + static_cast<StreamNumber>(links_.size());
    link.self = static_cast<int32_t>(std::ranges::find(link.members, rank_) - link.members.begin());
  }
  return link;
}

bool DeviceLinks::may_launch(Link& link, int64_t turn) {
  if (link.launched != turn) {
    return false;
  }
  if (!link.opened) {
    link.opened = true;
    link.id = device_.open_link(link.name, link.self, static_cast<int32_t>(link.members.size()));
  }
  const LinkState state = device_.state_of(link.id);
  if (state == LinkState::broken) {
    throw_broken(link);
  }
  return state == LinkState::ready;
}

void DeviceLinks::throw_broken(const Link& link) const {
  const std::string trouble = device_.trouble_of(link.id);
  throw LinkBroken(trouble.empty() ? "a connection broke" : "a connection broke: " + trouble);
}

void DeviceLinks::write_to(Journal& journal) const {
  auto& groups = journal.groups[static_cast<size_t>(rank_)];
  for (const auto& [group, made] : groups_) {
    if (group != world_group) {
      groups.resize(std::max(groups.size(), size_t{group.value} + 1));
      groups[group.value] = {made.key, made.members};
    }
  }
}

}  // namespace lockstep::backend
