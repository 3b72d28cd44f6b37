#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// Something by which a training differs from that of one device, as its framework is written.
struct KnownDifference {
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do; may be empty
  bool operator==(const KnownDifference&) const = default;
};

/// What a training is by the nature of its algorithm: no defect.
struct ByDesign {
  bool replicas_differ = false;  ///< every rank trains weights of its own
  /// Why one device does not compute the same weights; empty: it does.
  std::string not_as_one_device{};
  /// The largest |x - decoded x| over all numbers that this rank compressed.
  std::optional<double> compression_error{};
  bool operator==(const ByDesign&) const = default;
};

}  // namespace lockstep
