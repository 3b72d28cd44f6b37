#pragma once

#include "model/strategy/strategy.hpp"
#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Steps of other ranks that this one mirrors, as periods: like theirs they repeat themselves.
class MirroredSteps final : public MirroredIterations {
 public:
  /// `kind`: of them, in all epochs. `tells`: it tells the world of them.
  MirroredSteps(Training& training, int64_t kind, bool tells);
  void begin() override;
  void end(bool exchanges_gradients) override;

 private:
  Training& training_;
  RepeatedLoop loop_;
  int64_t kind_;
  bool tells_;
  int64_t next_ = 0;
};

}  // namespace lockstep
