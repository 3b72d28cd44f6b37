#include "backend/libtorch/meeting.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "backend/device/device.hpp"
#include "backend/libtorch/runtime.hpp"

using namespace lockstep;

namespace meeting_test {
using backend::Meeting;
using backend::MeetingOptions;

namespace {

using Clock = std::chrono::steady_clock;

struct Listener {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};

  Listener() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket, 8) == 0);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  }
  uint16_t port() const { return ntohs(address.sin_port); }
};

/// A link to a port of this host, which can be taken down: then nothing comes through any more, and
/// nobody is reported.
class Link {
 public:
  explicit Link(uint16_t to) : thread_([this, to] { carry(to); }) {}
  ~Link() {
    ends_ = true;
    thread_.join();
    ::close(listener_.socket);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  uint16_t port() const { return listener_.port(); }
  void take_down() { down_ = true; }

 private:
  void carry(uint16_t to) {
    const int near = accepted();
    const int far = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = listener_.address;
    address.sin_port = htons(to);
    bool up =
        near >= 0 && ::connect(far, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    while (!ends_) {
      std::array<pollfd, 2> ready{{{near, POLLIN, 0}, {far, POLLIN, 0}}};
      if (!up || down_ || ::poll(ready.data(), ready.size(), 10) <= 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(up && !down_ ? 0 : 10));
        continue;
      }
      for (const size_t from : {0U, 1U}) {
        std::array<char, 4096> bytes{};
        if ((ready.at(from).revents & (POLLIN | POLLHUP)) == 0) {
          continue;
        }
        const ssize_t count = ::recv(ready.at(from).fd, bytes.data(), bytes.size(), 0);
        up = up && count > 0 &&
             ::send(ready.at(1 - from).fd, bytes.data(), static_cast<size_t>(count),
                    MSG_NOSIGNAL) == count;
      }
    }
    ::close(near);
    ::close(far);
  }
  int accepted() {
    pollfd comes{listener_.socket, POLLIN, 0};
    while (!ends_) {
      if (::poll(&comes, 1, 10) > 0) {
        return ::accept(listener_.socket, nullptr, nullptr);
      }
    }
    return -1;
  }

  Listener listener_;
  std::atomic<bool> down_ = false;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

MeetingOptions options_of(int32_t rank, uint16_t port) {
  MeetingOptions options;
  options.place.rank = rank;
  options.place.world_size = 2;
  options.place.master_port = port;
  options.join_timeout = std::chrono::seconds(20);
  options.end_timeout = std::chrono::milliseconds(200);
  return options;
}

}  // namespace

TEST_CASE("words left on the board of a meeting come to the others, and a dead link is reported") {
  backend::quieten_libtorch();
  const Listener store;
  MeetingOptions of_rank_0 = options_of(0, store.port());
  of_rank_0.listening_socket = store.socket;
  auto serving =
      std::async(std::launch::async, [&] { return std::make_unique<Meeting>(of_rank_0); });
  Link link(store.port());
  Meeting here(options_of(1, link.port()));
  const std::unique_ptr<Meeting> there = serving.get();
  CHECK(here.run_number() == there->run_number());

  const auto board = here.board("run");
  const auto other = there->board("run");
  CHECK_FALSE(board->look("colour").has_value());
  other->post("colour", {3, 1, 4});
  CHECK(board->look("colour") == std::vector<uint8_t>{3, 1, 4});

  link.take_down();
  const auto began = Clock::now();
  CHECK_THROWS_AS(board->look("colour"), backend::DeviceError);
  CHECK_THROWS_AS(board->post("colour", {1}), backend::DeviceError);
  CHECK(Clock::now() - began < std::chrono::seconds(30));  // each within 2 s on a quiet machine
  CHECK(other->look("colour") == std::vector<uint8_t>{3, 1, 4});
}

}  // namespace meeting_test
