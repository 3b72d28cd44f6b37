#include "rehearsal/launch/interruption.hpp"

#include <pthread.h>

namespace lockstep::cli {

namespace {

sigset_t interruptions() {
  sigset_t signals{};
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  struct sigaction hang_up {};  // nohup has it ignored, and so it stays
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {
    sigaddset(&signals, SIGHUP);
  }
  return signals;
}

}  // namespace

Interruption::Interruption() : signals_(interruptions()) {
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

Interruption::~Interruption() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool Interruption::arrived() {
  const timespec at_once{};
  arrived_ = arrived_ || sigtimedwait(&signals_, nullptr, &at_once) > 0;
  return arrived_;
}

void leave_interruptions_to_others() {
  const sigset_t signals = interruptions();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace lockstep::cli
