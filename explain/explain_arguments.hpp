#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/explain_keys.hpp"

namespace lockstep::cli {

/// The page of a library of `versions` ("versions.deepspeed"), or of what a script calls for a
/// strategy ("fully_shard", also behind the name of a strategy that takes it).
std::optional<KeyPage> find_argument_page(std::string_view name);
/// "versions.lightning" .., "fully_shard".
std::vector<std::string> argument_page_names();

}  // namespace lockstep::cli
