#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/property/sharded_case.hpp"

namespace lockstep::test {

// Evenly, however far the test has come: rapidcheck's ranges grow with the number of the case.
inline int32_t drawn_below(int32_t count) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int32_t>(0, count));
}
inline bool once_in(int32_t count) { return drawn_below(count) == 0; }

template <class T>
T chosen_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

/// Sizes, optimizer and steps of any training.
ShardedCase any_training();
void draw_horovod(ShardedCase& training);
void draw_gradient_allreduce(ShardedCase& training);
void draw_synchronous_server(ShardedCase& training);

}  // namespace lockstep::test
