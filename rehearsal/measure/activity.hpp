#pragma once

#include <cstddef>
#include <optional>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// What a rank, or its device, is busy with.
struct Activity {
  enum Kind : size_t {
    compute,
    optimizer,
    optimizer_on_host,
    communication,
    loading,  ///< the rank's own thread makes a batch
    host,
    drive,
    offload,
    prepared,  ///< somebody else makes a batch meanwhile, or it is on its way to the device
    waiting,   ///< a call that has not begun, for want of peers or data
    count
  };
};

/// Nothing for rows that take no time. Calls are `communication`; they are `waiting` from their
/// issue to their start.
std::optional<Activity::Kind> activity_of(const Row& row);

}  // namespace lockstep::cli
