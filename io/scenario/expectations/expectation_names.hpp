#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expression/value.hpp"
#include "model/scenario/expectation.hpp"

namespace lockstep {

/// Names of results that need no key: `step_time`, `breakdown.compute`, `memory.peak`, ..
const std::vector<std::string_view>& result_names();

/// `ddp.transfers.all_reduce.bytes` taken apart: case, name, key. The place is left empty.
ResultName split_result_name(const std::string& name);

/// Empty when the name is a result (or may be one of another case), else what to write.
std::string remedy_for_result_name(const ResultName& result);

/// Some value of the type of a result; another for another `index`.
Value stand_in_of(std::string_view name, int64_t index);
/// "a time, such as 400 ms": what a result is compared with.
std::string_view type_phrase_of(std::string_view name);

}  // namespace lockstep
