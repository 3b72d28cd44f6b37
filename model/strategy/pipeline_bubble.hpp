#pragma once

namespace lockstep {

/// The part of a step in which the ranks of a pipeline idle, on average, were all stages alike and
/// no message took time; 0 .. 1.
struct PipelineBubble {
  double of_schedule = 0;
  /// With the order of its messages, each of which waits for those before it.
  double with_messages = 0;
  bool operator==(const PipelineBubble&) const = default;
};

}  // namespace lockstep
