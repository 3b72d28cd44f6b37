#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::cli {

/// Grows by one when a key changes its meaning or goes away; new keys do not count.
inline constexpr int schema_version = 2;

using Json = nlohmann::ordered_json;

/// Indented, with a line feed at the end; bytes that are no UTF-8 are replaced.
std::string text_of(const Json& json);

}  // namespace lockstep::cli
