#pragma once

#include <csignal>
#include <stdexcept>

namespace lockstep::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end this process: they wait until they are
/// asked for, so that what was started can be ended in order. For a process whose other threads
/// block them.
class Interruption {
 public:
  Interruption();
  /// A signal that arrived in between and was not polled takes effect now.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Whether one has arrived; from then on always.
  bool arrived();

 private:
  sigset_t signals_{};
  sigset_t before_{};
  bool arrived_ = false;
};

/// Keeps these signals from the calling thread: they are for the one that started it.
void leave_interruptions_to_others();

/// The user ended a real run. what() says how far it came, line by line.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep::cli
