#pragma once

#include <optional>
#include <vector>

#include "cli/render/timeline/span.hpp"

namespace lockstep::cli {

/// Finds the steps, forwards, backwards and optimizer runs of a training among the operations of
/// one compute stream, which come in their order.
class Phases {
 public:
  /// `steps`: the optimizer runs on this stream. A replica of dp on another device has none.
  Phases(int32_t track, bool steps) : track_(track), has_steps_(steps) {}

  /// One operation; `finish` is `never` when it has not ended.
  void add(const Row& row, Time start, Time finish);
  /// An event that begins what a pipeline computes for one micro-batch: its operations follow.
  void begin_micro_batch(const Row& mark);
  /// The optimizer runs so far.
  int64_t steps() const { return number_ + (step_ && updated_ ? 1 : 0); }
  /// So many steps follow that are not among the operations.
  void leave_out(int64_t steps);
  /// No operation follows. `hangs`: this rank waits forever, so that what is under way never ends.
  void end(bool hangs);
  const std::vector<Span>& spans() const { return spans_; }

 private:
  enum class Part : uint8_t { none, batch, forward, backward, optimizer, after_backward };
  static Part part_of(const Row& row);

  void enter(Part part, Time start);
  void leave_phase();
  void begin_step(Time start);
  void leave_step_after_optimizer();
  void push(Span::Kind kind, Time start, Time finish, bool unfinished = false);
  void add_pending(Part part);

  int32_t track_;
  bool has_steps_;
  std::vector<Span> spans_;
  Part current_ = Part::none;
  bool forward_ended_ = false;
  Time phase_start_{};
  Time phase_finish_{};
  bool phase_pending_ = false;
  std::optional<Row> mark_;    ///< of the micro-batch whose operations come
  std::optional<Time> batch_;  ///< the start of what may turn out to be a step's first batch
  std::optional<Time> step_;
  std::optional<Time> updated_;  ///< the end of the step's optimizer so far
  int64_t number_ = 0;
  Time last_finish_{};
};

}  // namespace lockstep::cli
