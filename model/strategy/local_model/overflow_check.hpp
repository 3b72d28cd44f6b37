#pragma once

#include <optional>
#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// The search for numbers that are not finite in gradients of a scaled loss, on one device: a flag
/// (`found_inf`) that the device writes and the host reads.
class OverflowCheck {
 public:
  OverflowCheck(Rank& rank, DeviceId device);

  /// Divides the gradients by the scale in the kernel that looks at them.
  void unscale(const std::vector<Slice>& gradients, double scale);
  /// All ranks of the group learn what one of them has found.
  void share(GroupId ranks, Reduction reduction);
  /// Whether one was found, once: the host waits for all that the device has to do. Nothing:
  /// numbers carry no values.
  Task<std::optional<bool>> found();

 private:
  Rank* rank_;
  DeviceId device_;
  Slice flag_;
};

}  // namespace lockstep
