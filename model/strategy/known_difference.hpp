#pragma once

#include <string>

namespace lockstep {

/// Something by which a training differs from that of one device, as its framework is written.
struct KnownDifference {
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do; may be empty
  bool operator==(const KnownDifference&) const = default;
};

}  // namespace lockstep
