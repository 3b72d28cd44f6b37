#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/backward_pass.hpp"
#include "model/strategy/local_model/forward_record.hpp"

namespace lockstep {

class ReplicaState;

/// The last forward of a replica, and earlier ones that a backward may still go through.
class ForwardHistory {
 public:
  /// The last one, or the one whose backward is under way.
  ForwardRecord& now() { return now_; }
  const ForwardRecord& now() const { return now_; }
  /// The number of a forward that begins; each has its own.
  int64_t next_number() { return ++forwards_; }

  /// The number of the last forward.
  int64_t last() const { return now_.number; }
  /// The last forward keeps what it left beyond the next one, for a backward through both.
  void keep();
  /// A kept forward is no longer wanted.
  void drop(Rank& rank, int64_t number);
  /// The next backward goes through these forwards, the last one first: the last, or kept ones.
  void go_back_through(std::vector<BackwardPass> passes) { passes_ = std::move(passes); }
  bool has_passes() const { return !passes_.empty(); }
  /// These, or where nothing was said the last forward alone, as `options` ask for it.
  std::vector<BackwardPass> take_passes(const StepOptions& options);
  /// What follows is about this forward.
  void turn_to(int64_t number);
  /// The backward has ended: the last forward is current again, those used up are forgotten.
  void return_to(int64_t last);
  /// Whether one of the passes behind `pass` adds to gradients of the layer's parameters.
  bool adds_later(const ReplicaState& state, std::span<const BackwardPass> passes, size_t pass,
                  size_t layer) const;
  /// Layers through which the backward that comes may go, of all forwards that it may go through,
  /// last first.
  std::vector<size_t> layers_of_backward() const;
  /// Layers of the last forward through which its backward goes, last first.
  std::vector<size_t> layers_last_to_first() const { return now_.layers_last_to_first(); }
  /// Frees what all of them keep.
  void release(Rank& rank);

 private:
  const ForwardRecord& forward_of(int64_t number) const;

  ForwardRecord now_;
  std::vector<ForwardRecord> kept_;
  std::vector<BackwardPass> passes_;
  int64_t forwards_ = 0;
};

}  // namespace lockstep
