#include "model/strategy/sharded/deepspeed/swap_buffers.hpp"

#include <algorithm>

namespace lockstep {

void SwapBuffers::allocate(Rank& rank, DType dtype, int64_t count, int64_t elements) {
  elements_ = elements;
  for (int64_t buffer = 0; buffer < count; ++buffer) {
    free_.push_back(buffers_.size());
    buffers_.push_back(rank.allocate(Purpose::workspace, dtype, elements, host_device));
  }
  used_.resize(buffers_.size());
}

std::vector<size_t> SwapBuffers::take(size_t count) {
  std::vector<size_t> taken(free_.end() - static_cast<int64_t>(std::min(count, free_.size())),
                            free_.end());
  free_.resize(free_.size() - taken.size());
  return taken;
}

void SwapBuffers::give(size_t buffer, Ticket used) {
  used_[buffer] = used;
  free_.push_back(buffer);
}

}  // namespace lockstep
