#pragma once

#include <memory>

#include "model/strategy/exchange/hooks/bucket_hook.hpp"

namespace lockstep {

/// allreduce_hook: each rank divides, then the sum is formed (default_hooks.py).
class AllReduceHook final : public BucketHook {
 public:
  Ticket start(Rank& rank, const FullBucket& bucket) override;
};

/// noop_hook: every rank keeps its own gradients, undivided (debugging_hooks.py).
class NoopHook final : public BucketHook {
 public:
  Ticket start(Rank& rank, const FullBucket& bucket) override;
};

/// fp16_compress_hook and bf16_compress_hook, which exchange by all_reduce, and the wrappers of
/// these names around another hook: that gets the bucket in 16 bits, state and all
/// (default_hooks.py).
class CastingHook final : public BucketHook {
 public:
  CastingHook(DType dtype, std::unique_ptr<BucketHook> inner);
  Program begin(Rank& rank) override { return inner_->begin(rank); }
  Ticket start(Rank& rank, const FullBucket& bucket) override;
  Program finish(Rank& rank) override;
  std::vector<Bytes> take_messages() override { return inner_->take_messages(); }

 private:
  DType dtype_;
  std::unique_ptr<BucketHook> inner_;
  std::vector<Slice> narrow_;  ///< the buckets of this backward
};

}  // namespace lockstep
