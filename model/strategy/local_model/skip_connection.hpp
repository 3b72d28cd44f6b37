#pragma once

#include "model/core/buffer.hpp"

namespace lockstep {

/// Of a forward: what a skip connection remembers on the way forth, what comes back over it.
struct SkipConnection {
  Slice remembered;
  Slice aside;
  Slice gradient_of_sum;
  Slice gradient_of_shortcut;
  /// What is added to the other branch.
  const Slice& branch() const { return aside.buffer != no_buffer ? aside : remembered; }
};

}  // namespace lockstep
