#pragma once

#include <string>

#include "model/core/units.hpp"

namespace lockstep {

/// "512 B", "5.8 GiB": for sentences.
std::string text_of(Bytes bytes);

}  // namespace lockstep
