#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// One measured size of a collective.
struct CollectiveMeasurement {
  int64_t bytes = 0;   ///< of the larger side, as nccl-tests counts
  double time_us = 0;  ///< out of place
  int line = 0;
};

/// Times that nccl-tests measured, or what is wrong with the file.
struct CollectiveTable {
  std::vector<CollectiveMeasurement> rows;
  std::vector<Diagnostic> diagnostics;  ///< the first; empty: the table is complete
  Sources lines;                        ///< the faulty line, for `render`
};

/// Reads either the output of nccl-tests as it prints it (lines that begin with `#` are passed
/// over), or CSV whose first line without `#` names the columns: `size_bytes` and `time_us`, or
/// `time_us_oop` as in data/nccl-tests. Sizes rise. Sizes of 0 bytes are passed over.
CollectiveTable read_collective_table(const std::string& path);

}  // namespace lockstep
