#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "backend/gloo/mailbox.hpp"

namespace lockstep::backend {

/// The header that a send transmits before its payload.
struct Offer {
  uint64_t communicator = 0;
  uint64_t payload_slot = 0;
  int64_t bytes = 0;
  int32_t tag = 0;
  uint8_t carries_values = 0;
  uint8_t goodbye = 0;  ///< 1: no offer, the receiver shall stop listening; 2: nothing at all
  uint16_t unused = 0;
  int32_t source = 0;  ///< filled in by the receiver
  int32_t padding = 0;
};

/// A receive that waits for its offer.
struct WantedMessage {
  uint64_t communicator = 0;
  int32_t source = 0;  ///< or any_rank
  int32_t tag = 0;
  int64_t bytes = 0;
  bool started = false;  ///< the operation runs: its payload may come
  std::optional<Offer> offer{};
  std::unique_ptr<Message> payload{};  ///< once started and offered, when the sizes agree
};

/// Matches the receives of one rank with the offers of other ranks: per communicator, source
/// and tag in order; a receive without source takes the first offer of its size that no named one
/// wants. A thread of its own takes offers as they come, so that no receive holds up another.
class Matcher {
 public:
  /// `mailbox` outlives the matcher; `run` distinguishes runs over the same connections.
  Matcher(int32_t rank, int32_t world_size, uint64_t run, Mailbox& mailbox, Progress& progress);
  /// Joins the listening thread; `dismiss` or an abort came before.
  ~Matcher();

  /// Makes an offer to another rank, or to this one. The message is null in the latter case.
  std::unique_ptr<Message> offer(int32_t to, Offer offer);

  std::shared_ptr<WantedMessage> want(uint64_t communicator, int32_t source, int32_t tag,
                                      int64_t bytes);
  void start(WantedMessage& wanted);
  /// Returns when the payload has come. Throws RunAborted or ConnectionBroke; waits for the abort
  /// when the sizes differ.
  void wait(WantedMessage& wanted);

  void abort();
  bool listens() const { return listener_.joinable(); }
  /// Asks the matcher of another rank to stop listening, and waits until it knows.
  void dismiss(int32_t other);
  /// Whether no offer is left without a receive, and no peer is gone.
  bool is_clean();

 private:
  uint64_t offers_slot() const;
  void listen();
  bool listen_once();
  bool forget_gone_peers();
  void take(const Offer& offer);
  void begin_payload(WantedMessage& wanted);

  int32_t rank_;
  std::vector<int32_t> world_;
  uint64_t run_;
  Mailbox& mailbox_;
  Progress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<WantedMessage>> wanted_;  ///< without an offer, in order
  std::deque<Offer> offers_;                           ///< that nobody wants yet, in order
  bool aborted_ = false;
  bool broken_ = false;  ///< some peer is gone
  std::vector<std::unique_ptr<Message>> probes_;
  std::thread listener_;
};

}  // namespace lockstep::backend
