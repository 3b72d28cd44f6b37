#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::test {

/// Steps that end at these times, of ten rows each.
inline std::vector<cli::StepMark> marks_of_steps(const std::vector<int64_t>& ends) {
  std::vector<cli::StepMark> steps;
  for (const int64_t end : ends) {
    const int64_t row = std::ssize(steps) * 10;
    cli::StepMark mark;
    mark.rows = {row, row + 10};
    mark.finish = Time(end);
    steps.push_back(mark);
  }
  return steps;
}

}  // namespace lockstep::test
