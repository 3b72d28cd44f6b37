#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "backend/rank/progress.hpp"
#include "model/program/value_store.hpp"

namespace gloo {
class Context;
namespace transport {
class UnboundBuffer;
}  // namespace transport
}  // namespace gloo

namespace lockstep::backend {

/// Thrown out of a wait when the run is aborted.
struct RunAborted {};

/// Thrown when the connection to a peer broke: its process has ended.
struct ConnectionBroke {};

class Message;

/// The messages of one rank over its Gloo context. A message goes from one rank to another in a
/// slot; in each slot messages arrive in the order in which they were posted. A send is taken when
/// its receive has been posted (rendezvous). Posting never waits.
class Mailbox {
 public:
  /// `context` may be null in a world of one. Both outlive the mailbox.
  Mailbox(int32_t rank, std::shared_ptr<gloo::Context> context, Progress& progress);
  ~Mailbox();

  std::unique_ptr<Message> send(int32_t to, uint64_t slot, std::vector<std::byte> bytes);
  /// Sends memory that nobody may write to until the message has been taken.
  std::unique_ptr<Message> send(int32_t to, uint64_t slot, ValueView bytes);
  std::unique_ptr<Message> receive(int32_t from, uint64_t slot, int64_t bytes);
  /// Into memory that outlives the message.
  std::unique_ptr<Message> receive_into(int32_t from, uint64_t slot, std::span<std::byte> to);
  /// From whichever of these ranks comes first. A rank does not hear itself this way.
  std::unique_ptr<Message> receive_any(std::span<const int32_t> from, uint64_t slot, int64_t bytes);

  /// Returns once the peer took it (send) or it came (receive); then says who the peer was.
  /// Throws RunAborted or ConnectionBroke; so do `send` and `receive`.
  int32_t wait(Message& message);
  /// For a call that can never complete. Throws RunAborted.
  [[noreturn]] void wait_for_abort();
  /// Ends all waits, now and later.
  void abort();

 private:
  friend class Message;
  /// Messages of this rank to itself that wait for their counterpart.
  struct OwnSlot {
    std::deque<Message*> sends;
    std::deque<Message*> receives;
  };
  /// Memory of a message, which is its own or outlives it.
  struct Memory {
    std::span<std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  static Memory to_receive(int64_t bytes);
  std::unique_ptr<Message> create(Memory memory, bool is_send, bool to_itself);
  std::unique_ptr<Message> receive_memory(int32_t from, uint64_t slot, Memory memory);
  std::unique_ptr<Message> send_memory(int32_t to, uint64_t slot, Memory memory);
  void post_to_itself(Message& message, uint64_t slot);
  void forget(Message& message);

  int32_t rank_;
  std::shared_ptr<gloo::Context> context_;
  Progress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  std::set<Message*> messages_;  ///< under way; order does not show
  std::map<uint64_t, OwnSlot> own_slots_;
};

/// One message under way. Destroying it withdraws it.
class Message {
 public:
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// The received bytes, once the receive has been waited for.
  std::span<const std::byte> bytes() const { return memory_.bytes; }

 private:
  friend class Mailbox;
  Message(Mailbox& mailbox, Mailbox::Memory memory, bool is_send);

  Mailbox& mailbox_;
  Mailbox::Memory memory_;
  bool is_send_;
  bool exchanged_with_itself_ = false;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;  ///< null: a message to itself
};

}  // namespace lockstep::backend
