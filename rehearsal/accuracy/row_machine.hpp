#pragma once

#include <string>

#include "io/table/throughput_table.hpp"

namespace lockstep::cli {

/// The machine of a row in the words of the scenario format.
struct RowMachine {
  std::string gpu{};   ///< the preset, or the name as printed
  std::string yaml{};  ///< what stands between the braces of `cluster`; empty: `why_not` says why
  std::string why_not{};
  int64_t gpus = 1;
  int64_t nodes = 1;
};
RowMachine machine_of_row(const ThroughputRow& row);

/// The profile of `versions.kernels` that stands for the framework of a row.
std::string software_of(const ThroughputRow& row);

}  // namespace lockstep::cli
