#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/rehearsal.hpp"
#include "cli/request.hpp"

namespace lockstep::cli {

/// Grows by one when a key changes its meaning or goes away; new keys do not count.
inline constexpr int schema_version = 1;

using Json = nlohmann::ordered_json;

/// One object for one case; for several, an object whose `cases` are such objects.
/// Seconds, bytes and fractions, with the unit in the key. Absent figures are null.
Json json_of(const std::vector<const Rehearsal*>& cases, const Request& request);
/// A file that is no scenario: verdict `invalid` and its errors.
Json json_of(const std::vector<Diagnostic>& diagnostics, const Request& request);
Json json_of(const Rehearsal& rehearsal, const Request& request);
Json json_of(const Finding& finding, const Sites& sites);

/// Indented, with a line feed at the end; bytes that are no UTF-8 are replaced.
std::string text_of(const Json& json);

}  // namespace lockstep::cli
