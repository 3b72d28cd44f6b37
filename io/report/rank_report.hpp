#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/report/report_error.hpp"
#include "io/report/run_identity.hpp"
#include "model/program/run.hpp"
#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

/// Software and hardware that a rank ran on.
struct RankOrigin {
  std::string libraries;  ///< "LibTorch 2.11.0, Gloo"
  std::string device;     ///< "Intel Xeon Platinum 8481C"
  std::string host;
  int64_t clock_at_start_ns = 0;  ///< what its steady clock said at time 0 of the journal
  RunIdentity identity{};
};

/// The report of one rank's process, as CBOR: how its program ended, what it waited for,
/// its memory, its log and its part of the journal with times and outcomes, in blocks that each
/// have a checksum (report_envelope.hpp). Numbers are stored as the machine has them, so writer and
/// reader run on machines of one kind.
std::vector<uint8_t> encode_rank_report(const RunResult& result, const RankLog& log, int32_t rank,
                                        const RankOrigin& origin);

/// Fills the entries of this rank in the result, whose lists have an entry for every rank and whose
/// journal may be null when the report has none, and the log. Trusts nothing: throws DamagedReport
/// where a byte is not as it was written or some are missing, ReportError where it is of another
/// version, rank or number of ranks, or holds what no rank writes.
RankOrigin add_rank_report(std::span<const uint8_t> report, int32_t rank, RunResult& result,
                           RankLog& log);

/// More than any run leaves; a longer one is refused unread.
inline constexpr int64_t report_bytes_max = int64_t{4} << 30;

}  // namespace lockstep
