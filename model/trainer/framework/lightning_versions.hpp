#pragma once

#include "model/core/version.hpp"

namespace lockstep {

// Releases of Lightning that changed something.
inline constexpr Version v1_5{1, 5, 0};
inline constexpr Version v1_6{1, 6, 0};
inline constexpr Version v1_7{1, 7, 0};
inline constexpr Version v1_8{1, 8, 0};
inline constexpr Version v1_9{1, 9, 0};
inline constexpr Version v2_0{2, 0, 0};
inline constexpr Version v2_1{2, 1, 0};
inline constexpr Version v2_2{2, 2, 0};
inline constexpr Version v2_3{2, 3, 0};
inline constexpr Version v2_5{2, 5, 0};
inline constexpr Version v2_6{2, 6, 0};
inline constexpr Version never{99, 0, 0};

}  // namespace lockstep
