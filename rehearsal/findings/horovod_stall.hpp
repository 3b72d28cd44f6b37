#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace lockstep::cli {

/// What Horovod does about a tensor that some rank never hands over, by the variables of the
/// environment: a sentence without its full stop (horovod/common/stall_inspector.cc).
std::string stall_limits(const Scenario& scenario);

}  // namespace lockstep::cli
