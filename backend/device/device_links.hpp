#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/device/device.hpp"
#include "model/core/op.hpp"
#include "model/program/journal.hpp"

namespace lockstep::backend {

/// A communicator of the library as one rank uses it.
struct Link {
  std::string name;
  std::vector<int32_t> members;  ///< global ranks
  int32_t self = 0;              ///< index of this rank
  bool opened = false;
  LinkId id = 0;
  StreamNumber side_stream = 0;  ///< of its part of a grouped call over several links
  int64_t submitted = 0;         ///< calls, in the order that all members must keep
  int64_t launched = 0;
};

/// A process group as one rank uses it.
struct DeviceGroup {
  uint64_t key = 0;              ///< the same for all members
  std::vector<int32_t> members;  ///< global ranks, in group order
  int64_t calls = 0;             ///< collectives submitted so far
};

/// The groups of one rank, and the links over which it communicates in them. Each is opened when
/// the first call goes over it.
class DeviceLinks {
 public:
  /// The device outlives them.
  DeviceLinks(Device& device, int32_t rank, int32_t world_size);

  /// Of a call that is submitted: a group that a new_group gave this rank, or the world. Stays
  /// where it is.
  DeviceGroup& group(GroupId id);
  /// The members of a new_group have come together.
  const DeviceGroup& make_group(GroupId id, uint64_t key, std::vector<int32_t> members);
  /// Whether peers can answer: this rank is a member, and so is a root or a peer.
  bool is_answered(const Op& op, const DeviceGroup& group) const;
  /// Over which the operation goes. Stays where it is.
  Link& of(const Op& op, const DeviceGroup& group);

  /// Whether it is the turn of this call, and the link can take it. Throws LinkBroken.
  bool may_launch(Link& link, int64_t turn);
  bool is_broken(const Link& link) const { return device_.state_of(link.id) == LinkState::broken; }
  [[noreturn]] void throw_broken(const Link& link) const;

  /// Adds the groups that were made to the rank's part of the journal.
  void write_to(Journal& journal) const;

 private:
  Device& device_;
  int32_t rank_;
  std::map<GroupId, DeviceGroup> groups_;
  std::map<std::string, Link> links_;
};

}  // namespace lockstep::backend
