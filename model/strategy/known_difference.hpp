#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

enum class Difference : uint8_t {
  from_one_device,     ///< it explains why values are not those of one device (LS306)
  of_replicas,         ///< and why replicas are not alike (LS305)
  by_design,           ///< what values one device has says nothing about this training
  of_replicas_for_now  ///< by design, and the replicas become alike again later
};

/// Something by which a training differs from that of one device, as its framework is written.
struct KnownDifference {
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do; may be empty
  Difference difference = Difference::from_one_device;
  bool operator==(const KnownDifference&) const = default;
  bool is_by_design() const {
    return difference == Difference::by_design || difference == Difference::of_replicas_for_now;
  }
};

}  // namespace lockstep
