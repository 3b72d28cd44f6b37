#pragma once

#include <string>

namespace lockstep::cli {

/// The processor of this machine as its kernel names it; "" where it does not.
std::string processor_name();

}  // namespace lockstep::cli
