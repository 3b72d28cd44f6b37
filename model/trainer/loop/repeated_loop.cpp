#include "model/trainer/loop/repeated_loop.hpp"

#include <algorithm>

namespace lockstep {

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, int64_t until) {
  if (pass % length_ != 0) {
    return 0;
  }
  const bool first = last_ != pass - length_ || !was_alike;
  const int64_t alike = std::max<int64_t>(0, (until - pass) / length_);
  ProgramMemory memory;
  training_.remember(memory);
  const int64_t periods = training_.rank().begins_period({level_, first, alike, &memory});
  if (periods > 0) {
    training_.repeat_since(at_last_, periods);
  }
  last_ = pass + periods * length_;
  at_last_ = training_.counted();
  return periods * length_;
}

}  // namespace lockstep
