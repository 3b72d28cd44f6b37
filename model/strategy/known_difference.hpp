#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

enum class DifferenceKind : uint8_t {
  from_one_device,       ///< it explains why values are not those of one device (LS306)
  of_replicas,           ///< and why replicas are not alike (LS305)
  by_design,             ///< what values one device has says nothing about this training
  of_replicas_for_now,   ///< by design, and the replicas become alike again later
  of_replicas_for_good,  ///< by design, and every rank trains weights of its own
  of_buffers  ///< replicas have the same weights, and buffers of their own beside (LS305)
};

/// Something by which a training differs from that of one device, as its framework is written.
struct KnownDifference {
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do; may be empty
  DifferenceKind kind = DifferenceKind::from_one_device;
  bool operator==(const KnownDifference&) const = default;
  bool is_by_design() const {
    return kind == DifferenceKind::by_design || kind == DifferenceKind::of_replicas_for_now ||
           kind == DifferenceKind::of_replicas_for_good;
  }
};

}  // namespace lockstep
