#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

namespace lockstep::cli {

/// The other end is gone, says nothing in time, or says what nobody understands.
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Messages between a launcher and its ranks over a stream socket: a length and then CBOR.
using Frame = nlohmann::json;

/// Waits no longer than the socket's own time-out. Throws FrameError.
void send_frame(int socket, const Frame& frame);

/// Puts frames together from what comes.
class FrameReader {
 public:
  /// Takes the available bytes, or waits for some where the socket blocks. False at the end of the
  /// stream. Throws FrameError when a frame is longer than `frame_bytes_max`.
  bool fill(int socket);
  /// The next whole frame. Throws FrameError where it is none.
  std::optional<Frame> take();

 private:
  std::vector<uint8_t> bytes_;
};

/// Reads one frame from a socket that blocks; nothing at the end of the stream.
std::optional<Frame> receive_frame(int socket, FrameReader& reader);

inline constexpr uint32_t frame_bytes_max = 1u << 30;

}  // namespace lockstep::cli
