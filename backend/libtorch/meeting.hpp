#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device/board.hpp"
#include "backend/gloo/fleet.hpp"
#include "backend/process/environment.hpp"
#include "backend/rank/progress.hpp"

namespace lockstep::backend {

struct MeetingOptions {
  ProcessPlace place;
  /// A listening socket for the store of rank 0, so that nobody can take its port; it is owned.
  std::optional<int> listening_socket;
  bool launched = false;  ///< one command starts all ranks: what to do is not to start one
  std::chrono::milliseconds join_timeout{60'000};  ///< until all ranks have come, and are connected
  /// Time to wait for the slowest rank at the end; a rank that misses it is lost.
  std::chrono::milliseconds end_timeout{30'000};
};

/// Where the processes of one run meet: LibTorch's TCPStore, served by rank 0. Throws
/// WorldUnavailable from everything. What asks the store waits no longer than its timeout, even
/// where a link is down and no answer ever comes; a process that gave up so must end by _Exit.
class Meeting {
 public:
  /// Returns when all ranks are there; says who did not come within the timeout.
  explicit Meeting(const MeetingOptions& options);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Drawn by rank 0 and the same on all ranks: a second run has a different one.
  uint64_t run_number() const { return run_number_; }

  /// Connects this rank to all others by Gloo over TCP; null in a world of one. Over 127.0.0.1
  /// where rank 0 is there, else over GLOO_SOCKET_IFNAME or the interface of this host's name.
  std::shared_ptr<gloo::Context> connect();

  /// The store as a board, of which all keys begin with `name`.
  std::unique_ptr<Board> board(const std::string& name);

  /// Returns when every rank has called it, or when nobody gets on for the end timeout (as far as
  /// `elsewhere` knows, which may be null), or when rank 0 is gone.
  void wait_for_all(Elsewhere* elsewhere = nullptr) noexcept;

 private:
  class Store;
  class StoreBoard;
  /// What is left of the join timeout.
  std::chrono::milliseconds left_to_join() const;
  void open_store();
  void wait_for_joining();
  std::string meeting_place() const;
  std::string who_did_not_come(const std::vector<int32_t>& missing) const;
  MeetingOptions options_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::shared_ptr<Store> store_;
  uint64_t run_number_ = 0;
};

}  // namespace lockstep::backend
