#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/explain_keys.hpp"

namespace lockstep::cli {

/// The page of a cluster, GPU or model preset, by any name that people have for it; of one that
/// exists and is not modelled, which modelled one is nearest. Nothing for other names.
std::optional<KeyPage> find_preset_page(std::string_view name);
/// Every spelling that has a page.
std::vector<std::string> preset_page_names();

}  // namespace lockstep::cli
