#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep {

/// What a rank wrote into a checkpoint.
struct WrittenBytes {
  Bytes own{};
  /// What each rank wrote; null: ranks that this one runs for wrote as much as it did.
  std::shared_ptr<const std::vector<Bytes>> by_rank{};

  WrittenBytes(Bytes bytes) : own(bytes) {}  // NOLINT(google-explicit-constructor)

  Bytes of(int32_t rank) const { return by_rank ? (*by_rank)[static_cast<size_t>(rank)] : own; }
};

}  // namespace lockstep
