#pragma once

#include <string>
#include <vector>

#include "properties/diagnosis/operation_table.hpp"

namespace lockstep {

/// A send and a receive among these operations that would meet if their tags were the same: "rank 0
/// sends with tag 1, and rank 1 receives with tag 2". Empty: there are none.
std::string tags_apart(const OperationTable& table, const std::vector<size_t>& operations);

}  // namespace lockstep
