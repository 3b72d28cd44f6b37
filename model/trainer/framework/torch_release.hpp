#pragma once

#include "model/core/version.hpp"

namespace lockstep {

/// The release of torch under a Lightning where the scenario names none: the newest with which that
/// Lightning was tested (versioning.rst of its documentation, "Compatibility matrix").
Version torch_release_of(const Version& lightning);

}  // namespace lockstep
