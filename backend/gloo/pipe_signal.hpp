#pragma once

#include <csignal>

namespace lockstep::backend {

/// Blocks SIGPIPE in this thread, and in threads that it starts meanwhile: Gloo writes to sockets
/// without asking for an error instead of the signal.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~PipeSignalBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep::backend
