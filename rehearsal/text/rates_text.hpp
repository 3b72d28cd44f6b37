#pragma once

#include <string>

#include "model/trainer/logging/run_log.hpp"

namespace lockstep::cli {

/// The learning rates of a rank at the end: "0.1 and 0.02" of two optimizers; "none".
std::string rates_text(const RankLog& log);

}  // namespace lockstep::cli
