#pragma once

#include <string>

namespace lockstep {

/// Why what lies there cannot be read as a file: "this is a folder, not a file", "this is a pipe,
/// not a file"; empty where it can be, and where nothing lies there. Follows links, opens nothing,
/// so that it never waits.
std::string why_not_regular(const std::string& path);

}  // namespace lockstep
