#pragma once

#include <optional>
#include <string_view>

#include "io/scenario/reader/reader.hpp"
#include "model/scenario/object.hpp"

namespace lockstep {

/// An argument's value: null, bool, int, float, text, list or map, distinguished by its spelling.
/// `key` names it in complaints.
std::optional<PlainValue> read_plain(Reader& reader, const Node& node, std::string_view key);

}  // namespace lockstep
