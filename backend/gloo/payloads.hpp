#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/gloo/mailbox.hpp"

namespace lockstep::backend {

/// The payloads of one collective, which travel in chunks so that a rank holds at most
/// `collective_workspace` of what others send beside its own buffers. All members cut alike. Sends
/// are posted at once and hold no memory of their own; each waits until its receive is posted.
class Payloads {
 public:
  using Contributions = std::vector<std::span<const std::byte>>;

  /// `members`: global ranks in group order; outlive the payloads, as `mailbox` does. `sums`: parts
  /// of all members are held at once, so that chunks are smaller.
  Payloads(std::span<const int32_t> members, bool sums, uint64_t slot, Mailbox& mailbox);

  /// To another member. The bytes stay as they are until `wait_for_sent`.
  void send(int64_t member, const ValueView& bytes);
  /// From another member, into memory that stays until `wait_for_received`.
  void receive_into(int64_t member, std::span<std::byte> to);
  void wait_for_received();
  /// Takes what another member sends, and drops it.
  void drop(int64_t member, int64_t bytes);

  /// For each chunk of `bytes` bytes, which every member sends: `take(begin, parts)`, where parts
  /// are by member. What `here` holds (this member's bytes, and any that have come otherwise) is
  /// not received; the others of it are empty. The sends of this chunk, too, have been taken by
  /// then.
  void gather_chunks(int64_t bytes, const Contributions& here,
                     const std::function<void(size_t begin, const Contributions& parts)>& take);
  void wait_for_sent();

 private:
  using Messages = std::vector<std::unique_ptr<Message>>;
  int32_t rank_of(int64_t member) const { return members_[static_cast<size_t>(member)]; }
  void wait_for(Messages& messages);

  std::span<const int32_t> members_;
  uint64_t slot_;
  Mailbox& mailbox_;
  size_t chunk_bytes_;
  std::vector<Messages> sent_;  ///< by chunk
  Messages received_;
};

}  // namespace lockstep::backend
