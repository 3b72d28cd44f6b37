#pragma once

#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

/// The modules of a network as hooks of a framework see them: the whole, every container of several
/// layers, and every layer. Outer ones come before those in them.
struct ModuleRange {
  size_t first = 0;
  size_t last = 0;
  bool is_layer = false;
};
std::vector<ModuleRange> hooked_modules(const Network& network);

}  // namespace lockstep
