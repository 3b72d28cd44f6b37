#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep {

/// A number that names one thing of one kind. Ids of different kinds do not mix.
template <class Kind, class Number = uint32_t>
struct Id {
  Number value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

/// Global rank, 0 .. world size - 1.
using RankId = Id<struct RankKind>;
/// Device of one rank (0 = its first); a rank of DP drives several. The host is `host_device`, the
/// local NVMe storage of its node `drive_device`: nothing computes there.
using DeviceId = Id<struct DeviceKind, uint8_t>;
inline constexpr DeviceId host_device{255};
inline constexpr DeviceId drive_device{254};
constexpr bool is_off_device(DeviceId device) {
  return device == host_device || device == drive_device;
}
/// Process group as this rank numbers them: 0 is the world, then in the order in which it made
/// them.
using GroupId = Id<struct GroupKind>;
inline constexpr GroupId world_group{0};
/// Buffer of one rank; never reused within a run.
using BufferId = Id<struct BufferKind>;
inline constexpr BufferId no_buffer{0};
/// Lane (host thread) of one rank; 0 is the main program.
using LaneId = Id<struct LaneKind, uint16_t>;

/// One in-order queue of one device: the device in the high byte, the queue in the low one.
struct StreamId {
  uint16_t value = 0;
  constexpr auto operator<=>(const StreamId&) const = default;
  constexpr DeviceId device() const { return DeviceId{static_cast<uint8_t>(value >> 8)}; }
  constexpr uint8_t queue() const { return static_cast<uint8_t>(value & 0xff); }
};

/// The queues that strategies use; a scenario's own streams are numbered from `first_named`.
namespace queue {
inline constexpr uint8_t compute = 0;
inline constexpr uint8_t communication = 1;
inline constexpr uint8_t copy = 2;
inline constexpr uint8_t data = 3;
inline constexpr uint8_t read = 4;   ///< of the drive
inline constexpr uint8_t write = 5;  ///< of the drive
inline constexpr uint8_t first_named = 8;
inline constexpr uint8_t named = 88;
// Calls of Gloo wait for no other of another group, its messages for no other at all
// (model/user_program/gloo_queues.hpp).
inline constexpr uint8_t first_group = 96;  ///< collectives of groups other than world
inline constexpr uint8_t groups = 32;
inline constexpr uint8_t first_send = 128;
inline constexpr uint8_t first_receive = 192;
inline constexpr uint8_t messages = 64;  ///< each way
constexpr bool of_group(uint8_t queue) { return queue >= first_group && queue < first_send; }
constexpr bool of_sends(uint8_t queue) { return queue >= first_send && queue < first_receive; }
constexpr bool of_receives(uint8_t queue) { return queue >= first_receive; }
}  // namespace queue

constexpr StreamId stream(uint8_t queue_number, DeviceId device = DeviceId{0}) {
  return StreamId{static_cast<uint16_t>(device.value << 8 | queue_number)};
}
inline constexpr StreamId compute_stream = stream(queue::compute);
inline constexpr StreamId communication_stream = stream(queue::communication);
inline constexpr StreamId copy_stream = stream(queue::copy);
inline constexpr StreamId drive_reads = stream(queue::read, drive_device);
inline constexpr StreamId drive_writes = stream(queue::write, drive_device);

/// Names one submission (or promise) of one lane. Sequence 0 is "nothing": always settled.
struct Ticket {
  uint32_t sequence = 0;
  LaneId lane{};
  constexpr bool operator==(const Ticket&) const = default;
  constexpr explicit operator bool() const { return sequence != 0; }
};
static_assert(sizeof(Ticket) == 8);

}  // namespace lockstep

template <class Kind, class Number>
struct std::hash<lockstep::Id<Kind, Number>> {
  size_t operator()(lockstep::Id<Kind, Number> id) const noexcept {
    return std::hash<Number>()(id.value);
  }
};
