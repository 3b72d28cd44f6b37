#pragma once

#include <string>
#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// The thread of the rank on its host, which waits for the drive.
inline constexpr StreamId host_thread = stream(queue::compute, host_device);

/// Equal buffers in host memory through which tensors go to and from the drive
/// (deepspeed/runtime/swap_tensor/utils.py). They exist for as long as the training.
class SwapBuffers {
 public:
  void allocate(Rank& rank, DType dtype, int64_t count, int64_t elements);

  size_t free() const { return free_.size(); }
  int64_t elements() const { return elements_; }
  /// Indices of `count` buffers; as many as are free, where there are fewer.
  std::vector<size_t> take(size_t count);
  /// `used`: what has used it last.
  void give(size_t buffer, Ticket used);
  void note_use(size_t buffer, Ticket used) { used_[buffer] = used; }
  Slice of(size_t buffer, int64_t elements) const { return buffers_[buffer].part(0, elements); }
  /// What has to finish before a buffer that was taken is written.
  Ticket used(size_t buffer) const { return used_[buffer]; }

 private:
  int64_t elements_ = 0;
  std::vector<Slice> buffers_;
  std::vector<Ticket> used_;
  std::vector<size_t> free_;
};

}  // namespace lockstep
