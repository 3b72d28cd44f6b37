#pragma once

#include <map>
#include <vector>

#include "cli/render/over_time/left_out_time.hpp"

namespace lockstep::cli {

/// What tensors hold on the devices of one rank. An allocation counts from where the rank's thread
/// next submits.
class MemoryOverTime {
 public:
  MemoryOverTime(const Journal& journal, int32_t rank,
                 const std::vector<LeftOutStretch>& stretches);

  /// On the device that holds most at this moment.
  Bytes at(Time moment) const;

  struct Mark {
    Time at{};
    Bytes held{};
  };
  const std::vector<Mark>& marks() const { return marks_; }

 private:
  std::vector<LeftOutStretch> stretches_;
  std::vector<Mark> marks_;
};

}  // namespace lockstep::cli
