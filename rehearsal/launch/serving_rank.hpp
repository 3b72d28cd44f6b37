#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "rehearsal/launch/child_processes.hpp"
#include "rehearsal/launch/frames.hpp"

namespace lockstep::cli {

/// One rank program that serves: takes case after case over a socket.
class ServingRank {
 public:
  /// Starts it. Throws RealRunFailed.
  ServingRank(const std::string& program, int32_t rank);
  ~ServingRank();
  ServingRank(const ServingRank&) = delete;
  ServingRank& operator=(const ServingRank&) = delete;

  pid_t process() const { return children_.process(0); }
  int socket() const { return socket_; }
  bool gone() const { return gone_; }

  void say(const Frame& frame);
  /// Takes what came. `hear` gets whole frames.
  void listen(const std::function<void(const Frame&)>& hear);
  void look() { children_.look(); }
  /// Ends what does not end by itself.
  void end();
  std::string how_it_ended() const;

 private:
  std::string last_line_;
  ChildProcesses children_;
  int socket_ = -1;
  FrameReader reader_;
  bool gone_ = false;
};

}  // namespace lockstep::cli
