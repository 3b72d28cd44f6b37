#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/gloo/matcher.hpp"
#include "backend/rank/owned_op.hpp"

namespace lockstep::backend {

/// A process group as one rank uses it.
struct Communicator {
  uint64_t key = 0;              ///< the same for all members
  std::vector<int32_t> members;  ///< global ranks, in group order
  int64_t calls = 0;             ///< collectives submitted so far
  /// The last send to each rank and tag: sends of one such queue keep their order over streams.
  std::map<std::pair<int32_t, int32_t>, Ticket> last_send{};
};

/// One operation with lists of its own, which outlive the call of submit.
class Part {
 public:
  /// `communicator` outlives the run; null when the operation needs none. `call`: the position of
  /// a collective within it.
  Part(const Op& op, const Communicator* communicator, int64_t call);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  const Op& op() const { return op_.get(); }
  uint64_t communicator() const { return key_; }
  std::span<const int32_t> members() const { return members_; }
  int64_t call() const { return call_; }

  /// Set for a receive with a source, which takes part in matching from its submission on.
  std::shared_ptr<WantedMessage> wanted;

 private:
  OwnedOp op_;
  uint64_t key_ = 0;
  std::span<const int32_t> members_;
  int64_t call_ = 0;
};

/// The operations of one call of submit.
struct Submission {
  Ticket ticket;
  std::vector<Ticket> after;
  std::deque<Part> parts;  ///< a part has addresses within itself and never moves
};

}  // namespace lockstep::backend
