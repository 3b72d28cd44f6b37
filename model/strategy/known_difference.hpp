#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

enum class DifferenceKind : uint8_t {
  from_one_device,     ///< it explains why values are not those of one device (LS306)
  of_replicas,         ///< and why replicas are not alike (LS305)
  by_design,           ///< what values one device has says nothing about this training
  of_replicas_for_now  ///< by design, and the replicas become alike again later
};

/// Something by which a training differs from that of one device, as its framework is written.
struct KnownDifference {
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do; may be empty
  DifferenceKind kind = DifferenceKind::from_one_device;
  bool operator==(const KnownDifference&) const = default;
  bool is_by_design() const {
    return kind == DifferenceKind::by_design || kind == DifferenceKind::of_replicas_for_now;
  }
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
