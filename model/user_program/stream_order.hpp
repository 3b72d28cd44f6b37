#pragma once

#include <map>
#include <set>
#include <vector>

#include "model/program/rank.hpp"
#include "model/user_program/device_tensor.hpp"

namespace lockstep {

/// The order of one rank's streams, as c10d keeps it: a collective comes after the compute stream,
/// and the compute stream after a collective that was waited for. What a stream has to wait for is
/// kept until its next operation, which takes it along.
class StreamOrder {
 public:
  /// Both outlive the order.
  StreamOrder(Rank& rank, TensorStore& tensors) : rank_(rank), tensors_(tensors) {}

  /// What the next operation of a stream must come after, beyond what is on the stream already.
  /// Whoever takes it submits that operation.
  std::vector<Ticket> take_waits(StreamId on);
  /// The same for a call that also comes after all work on the compute stream.
  std::vector<Ticket> take_waits_after_compute(StreamId on, SiteId site);
  void submitted(StreamId on, Ticket ticket);
  /// Later work on `later` comes after the work that `earlier` held up to `ticket`.
  void let_wait(StreamId later, StreamId earlier, Ticket ticket);
  /// The last operation of the compute stream; a mark where that is not known.
  Ticket tail_of_compute(SiteId site);
  /// Later work of the compute stream comes after what statements made it wait for. To be called
  /// before a strategy puts work on it, and counted as such work.
  void hand_over_compute();

  /// The host waits for one operation, for all that a stream holds, and for everything on every
  /// stream that the program may have used.
  Program settle(Ticket ticket, StreamId on);
  Program synchronize(StreamId on, SiteId site);
  Program synchronize_all();

  /// Gives back the memory of dropped tensors that other streams may still use. What a stream has
  /// been told to wait for comes before whatever it does with the memory.
  void release_exposed();

 private:
  Rank& rank_;
  TensorStore& tensors_;
  std::map<StreamId, std::vector<Ticket>> waits_;
  std::set<StreamId> streams_;  ///< that the program has used
  Ticket compute_tail_{};
  bool compute_tail_known_ = true;
};

}  // namespace lockstep
