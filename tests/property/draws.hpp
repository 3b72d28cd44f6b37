#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

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

inline std::string one_of(const std::vector<std::string>& texts) {
  return *rc::gen::elementOf(texts);
}

}  // namespace lockstep::test
