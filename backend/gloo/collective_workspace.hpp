#pragma once

#include "model/core/units.hpp"

namespace lockstep::backend {

/// What a collective over Gloo holds at most on one rank beside the buffers that it reads and
/// writes, whatever their sizes and however many members it has (up to 4,096).
inline constexpr Bytes collective_workspace{int64_t{16} << 20};

}  // namespace lockstep::backend
