#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/expectation.hpp"

namespace lockstep {

/// Names of results that need no key: `step_time`, `breakdown.compute`, `memory.peak`, ..
const std::vector<std::string_view>& result_names();

/// `ddp.transfers.all_reduce.bytes` taken apart: case, name, key. The place is left empty.
ResultName split_result_name(const std::string& name);

/// Empty when the name is a result (or may be one of another case), else what to write.
std::string remedy_for_result_name(const ResultName& result);

}  // namespace lockstep
