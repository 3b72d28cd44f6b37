#pragma once

#include <cstdint>
#include <vector>

#include "io/report/report_error.hpp"
#include "model/program/journal.hpp"

namespace lockstep {

// What a reader of recorded rows holds them to before anything uses them as an index or a size.
// All throw ReportError.

inline constexpr uint16_t recorded_lanes_max = 1024;
inline constexpr uint32_t recorded_groups_max = 65536;
inline constexpr int64_t recorded_size_max = int64_t{1} << 60;

/// `ranks`: of the run. `rows`: of this lane so far; a lane numbers its tickets from 1, and each
/// has a row.
void check_row(const Row& row, int32_t ranks, int64_t rows);
void check_completion(const Completion& completion, int32_t ranks);
/// Members of a group, by global rank: each once.
void check_members(const std::vector<int32_t>& members, int32_t ranks);
void check_slice(const Slice& slice);

/// Whether a row has a ticket of its own.
inline bool has_ticket(const Row& row) {
  return row.row == RowKind::op || row.row == RowKind::promise;
}

}  // namespace lockstep
