#pragma once

#include "io/table/throughput_table.hpp"

namespace lockstep::cli {

/// A row with what the published scripts of its source say and the row does not: NCCL's variables
/// beside its interconnect, the layout of images beside its precision. Of processes that train
/// apart the row of one of them.
ThroughputRow with_scripts_of_source(const ThroughputRow& row);

}  // namespace lockstep::cli
