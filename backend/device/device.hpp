#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "model/core/op.hpp"
#include "model/core/values.hpp"

namespace lockstep::backend {

/// The device or its library refused, or a connection broke.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A link broke: its peer is gone, or it was aborted.
class LinkBroken : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The device itself has no room, whatever the scenario's device would have.
class DeviceFull : public DeviceError {
 public:
  DeviceFull(Bytes free, Bytes total) : DeviceError("out of memory"), free_(free), total_(total) {}
  Bytes free() const { return free_; }
  Bytes total() const { return total_; }

 private:
  Bytes free_;
  Bytes total_;
};

/// A place in a stream that the device will reach, as a CUDA event; 0: none.
using Mark = uint64_t;

/// A queue of a device: that of a StreamId, or one that a host needs besides, from `side_streams`
/// on, all on the first device.
using StreamNumber = uint32_t;
inline constexpr StreamNumber side_streams = 1u << 16;
constexpr StreamNumber number_of(StreamId stream) { return stream.value; }

/// A communicator of the library. What is launched on one link is ordered, on all its members
/// alike.
using LinkId = uint32_t;
enum class LinkState : uint8_t {
  busy,  ///< it connects, or takes what was launched last
  ready,
  broken,
};

/// One communication on one link. Peers and roots of `op` are global ranks.
struct LinkedOp {
  const Op* op = nullptr;
  LinkId link = 0;
  int32_t self = 0;                    ///< index of this rank among the members
  std::span<const int32_t> members{};  ///< global ranks; of point-to-point: sender, receiver
};

/// The devices of one rank and the library over which they communicate: what is CUDA and NCCL in
/// reality. No call waits for a peer; one waits for its device only where it says so. All but
/// `abort_links` are called from one thread, and all but that may throw DeviceError.
class Device {
 public:
  virtual ~Device() = default;

  /// Times count from here.
  virtual void start_clock() = 0;

  /// Zeros, where the buffer carries values. Throws DeviceFull.
  virtual void allocate(BufferId buffer, const BufferSpec& spec, bool carries_values) = 0;
  virtual void release(BufferId buffer) = 0;
  /// Both wait for their own copy alone.
  virtual void write(const Slice& to, const Values& values) = 0;
  virtual Values read(const Slice& from) = 0;

  /// A new place at the end of what the stream holds by now.
  virtual Mark mark(StreamNumber stream) = 0;
  /// Later work of the stream starts when the place is reached.
  virtual void wait_for(StreamNumber stream, Mark mark) = 0;
  virtual bool reached(Mark mark) = 0;
  /// When it was; only of marks that are reached.
  virtual Time time_of(Mark mark) = 0;
  virtual void forget(Mark mark) = 0;

  /// The operation waits on this thread for all that its stream holds.
  virtual bool waits_for_device(const Op& op) const = 0;
  /// A kernel or a copy. Throws ArithmeticError too.
  virtual void compute(const Op& op) = 0;

  /// Starts to connect the members that open a link of this name, `self` being one of them.
  virtual LinkId open_link(const std::string& name, int32_t self, int32_t size) = 0;
  virtual LinkState state_of(LinkId link) = 0;
  /// The library's message about a broken link; may be empty.
  virtual std::string trouble_of(LinkId link) = 0;
  /// Launches communications as one grouped call; their links are ready, and then busy until the
  /// stream holds all of it.
  virtual void communicate(StreamNumber stream, std::span<const LinkedOp> ops) = 0;
  /// Called when the stream holds all of it: adds to the stream what the library leaves undone.
  virtual void complete(StreamNumber stream, std::span<const LinkedOp> ops) = 0;
  /// Ends whatever waits for a peer. From any thread; all links are broken afterwards.
  virtual void abort_links() noexcept = 0;
};

}  // namespace lockstep::backend
