#pragma once

#include <nccl.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <string>

#include "backend/device/board.hpp"
#include "backend/device/device.hpp"

namespace lockstep::backend {

/// Throws DeviceError where a call of NCCL neither succeeded nor makes progress by itself.
void check_nccl(ncclResult_t result, const char* call);

/// The communicators of one rank. All are non-blocking (ncclConfig_t::blocking = 0): connecting and
/// launching go on by themselves and are asked after.
///
/// Each is made by ncclCommInitRankConfig out of an id that its first member leaves on the board,
/// not by ncclCommSplit: a split is a call of the parent, so it would wait for what the parent has
/// in flight, need ranks that are no members of the new group, and go down with the parent.
class NcclLinks {
 public:
  NcclLinks(int gpu, Board& board) : gpu_(gpu), board_(board) {}
  ~NcclLinks();
  NcclLinks(const NcclLinks&) = delete;
  NcclLinks& operator=(const NcclLinks&) = delete;

  LinkId open(const std::string& name, int32_t self, int32_t size);
  LinkState state_of(LinkId link);
  std::string trouble_of(LinkId link);
  /// Null when it is broken.
  ncclComm_t communicator(LinkId link);
  /// From any thread.
  void abort_all() noexcept;

 private:
  struct Link {
    std::string key;
    int32_t self = 0;
    int32_t size = 1;
    ncclComm_t communicator = nullptr;  ///< null: waits for its id, or broken
    bool broken = false;
    std::string trouble{};  ///< what NCCL said of it
    std::chrono::steady_clock::time_point looked{};
  };
  void look_for_id(Link& link);
  void connect(Link& link, const ncclUniqueId& id);
  void abort_together() noexcept;
  int gpu_;
  Board& board_;
  std::mutex mutex_;        ///< of what follows: abort_all comes from other threads
  std::deque<Link> links_;  ///< they stay where they are
  bool aborted_ = false;
};

}  // namespace lockstep::backend
