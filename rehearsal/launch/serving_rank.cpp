#include "rehearsal/launch/serving_rank.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <system_error>

#include "rehearsal/launch/real_run.hpp"

namespace lockstep::cli {

namespace {

constexpr std::chrono::seconds send_limit{5};

}  // namespace

ServingRank::ServingRank(const std::string& program, int32_t rank)
    : children_([this](size_t, const std::string& line) { last_line_ = line; }) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw RealRunFailed(fmt::format("no socket for rank {}: {}", rank, std::strerror(errno)));
  }
  socket_ = ends[0];
  const timeval limit{send_limit.count(), 0};
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ChildCommand command;
  command.program = program;
  command.arguments = {"--serve"};
  command.inherited_descriptor = ends[1];
  try {
    children_.start(command);
  } catch (const std::system_error& error) {
    close(ends[1]);
    close(socket_);
    throw RealRunFailed(fmt::format("rank {} cannot be started: {}", rank, error.what()));
  }
  close(ends[1]);
}

ServingRank::~ServingRank() { close(socket_); }

void ServingRank::say(const Frame& frame) {
  try {
    send_frame(socket_, frame);
  } catch (const FrameError&) {
    end();
  }
}

void ServingRank::listen(const std::function<void(const Frame&)>& hear) {
  try {
    const bool open = reader_.fill(socket_);
    while (const auto frame = reader_.take()) {
      hear(*frame);
    }
    if (!open) {
      end();
    }
  } catch (const std::exception&) {  // it says what nobody understands
    end();
  }
}

void ServingRank::end() {
  if (gone_) {
    return;
  }
  gone_ = true;
  children_.run_until(ChildProcesses::Clock::now() + std::chrono::milliseconds(200),
                      [] { return false; });
  children_.end_all(std::chrono::milliseconds(0));
}

std::string ServingRank::how_it_ended() const {
  const ChildEnd& end = children_.end(0);
  return end.signal != 0 ? fmt::format("ended by signal {} ({})", end.signal, strsignal(end.signal))
                         : fmt::format("ended with exit code {}: {}", end.exit_code, last_line_);
}

}  // namespace lockstep::cli
