#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/report/report_error.hpp"

namespace lockstep {

inline constexpr uint32_t report_version = 12;

/// The bytes of a report's file: a head (magic, version, length, checksum), then the content in
/// blocks of 64 KiB, each behind its checksum (CRC-32C of the block's number and bytes).
std::vector<uint8_t> sealed_report(std::span<const uint8_t> content);

/// The content again. Throws DamagedReport where any byte of the file is not as it was written,
/// where some are missing, and where there are more; ReportError where the file is of another
/// version.
std::vector<uint8_t> content_of_report(std::span<const uint8_t> file);

/// That this is one CBOR value of which no list is longer than its bytes, nor nested deeper than
/// reports are. Throws ReportError.
void check_cbor(std::span<const uint8_t> content);

}  // namespace lockstep
