#pragma once

#include <cstdint>

namespace lockstep {

/// A signal that a process answers by code of its own; every other one simply ends it.
enum class ProcessSignal : uint8_t {
  none,
  terminate,  ///< SIGTERM
};

}  // namespace lockstep
