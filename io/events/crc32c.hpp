#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// CRC-32C (Castagnoli), as RFC 3720 (iSCSI), appendix B.4, defines it.
uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep
