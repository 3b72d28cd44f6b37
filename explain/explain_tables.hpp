#pragma once

#include "explain/explain.hpp"

namespace lockstep::cli {

// The parts of the tables, one a file.
std::span<const Page> hang_pages();
std::span<const Page> value_pages();
std::span<const Page> setup_pages();
std::span<const Page> metric_pages();
std::span<const Page> result_pages();
std::span<const Page> script_pages();

}  // namespace lockstep::cli
