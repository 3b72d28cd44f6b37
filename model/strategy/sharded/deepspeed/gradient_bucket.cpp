#include "model/strategy/sharded/deepspeed/gradient_bucket.hpp"

#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

GradientBucket GradientBucket::allocate(Rank& rank, const Replica& replica, int64_t elements) {
  int64_t all = 0;
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    all += replica.network().parameter(replica.parameters()[index].place).elements();
  }
  const DType dtype = replica.plan().parameter_dtype;
  GradientBucket bucket;
  bucket.used_ = rank.allocate(Purpose::communication, dtype, std::min(all, elements));
  if (all < elements) {
    bucket.rest_ = rank.allocate(Purpose::communication, dtype, elements - all);
  }
  return bucket;
}

void GradientBucket::release(Rank& rank) const {
  rank.release(used_);
  if (rest_.buffer != no_buffer) {
    rank.release(rest_);
  }
}

void GradientBucket::take(Rank& rank, Replica& replica, size_t parameter, int64_t begin) const {
  auto& moved = replica.parameters()[parameter];
  const Slice to = part(begin, moved.tensor.gradient.elements);
  elementwise(rank, Kernel::copy, {moved.tensor.gradient}, {to}, 0,
              {compute_stream, {}, site_id(deepspeed_sites::fill_bucket)});
  replica.forget_gradient(rank, moved);
  moved.tensor.gradient = to;
  moved.gradient_is_view = true;
}

}  // namespace lockstep
