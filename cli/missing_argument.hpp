#pragma once

#include <string>

#include "cli/request.hpp"

namespace lockstep::cli {

/// What the request's command cannot do without; empty: nothing is missing.
std::string missing_argument(const Request& request);

}  // namespace lockstep::cli
