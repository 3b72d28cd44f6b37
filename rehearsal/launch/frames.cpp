#include "rehearsal/launch/frames.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace lockstep::cli {

void send_frame(int socket, const Frame& frame) {
  std::vector<uint8_t> bytes(sizeof(uint32_t));
  Frame::to_cbor(frame, bytes);
  const size_t length = bytes.size() - sizeof(uint32_t);
  if (length > frame_bytes_max) {
    throw FrameError("a message is too long");
  }
  const auto told = static_cast<uint32_t>(length);
  std::memcpy(bytes.data(), &told, sizeof told);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) {
      throw FrameError(std::strerror(errno));
    }
    sent += now > 0 ? static_cast<size_t>(now) : 0;
  }
}

bool FrameReader::fill(int socket) {
  std::array<uint8_t, 65536> block{};
  const ssize_t got = recv(socket, block.data(), block.size(), 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    return true;
  }
  if (got <= 0) {
    return false;
  }
  bytes_.insert(bytes_.end(), block.begin(), block.begin() + got);
  return true;
}

std::optional<Frame> FrameReader::take() {
  uint32_t length = 0;
  if (bytes_.size() < sizeof length) {
    return std::nullopt;
  }
  std::memcpy(&length, bytes_.data(), sizeof length);
  if (length > frame_bytes_max) {
    throw FrameError("a message is too long");
  }
  const size_t end = sizeof length + length;
  if (bytes_.size() < end) {
    return std::nullopt;
  }
  try {
    const auto first = bytes_.begin() + sizeof length;
    Frame frame = Frame::from_cbor(first, bytes_.begin() + static_cast<std::ptrdiff_t>(end));
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(end));
    return frame;
  } catch (const Frame::exception& error) {
    throw FrameError(error.what());
  }
}

std::optional<Frame> receive_frame(int socket, FrameReader& reader) {
  for (;;) {
    if (std::optional<Frame> frame = reader.take()) {
      return frame;
    }
    if (!reader.fill(socket)) {
      return std::nullopt;
    }
  }
}

}  // namespace lockstep::cli
