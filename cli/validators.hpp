#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace lockstep::cli {

// Checks of options. CLI11's own print a range of 300 digits, and let `nan` pass.
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator positive_seconds();
CLI::Validator seconds_between(double least, double most);
CLI::Validator memory_size();
/// "5000-5010", or "5000".
CLI::Validator step_range();

}  // namespace lockstep::cli
