#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C (Castagnoli) of these bytes, as RFC 3720 defines it for iSCSI. `before`: that of the
/// bytes before them, so that crc32c(b, crc32c(a)) is that of a and b together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace lockstep
