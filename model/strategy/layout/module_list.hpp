#pragma once

#include <span>
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

/// Of these layers, which run one after the other, the last that keeps anything for its backward:
/// in it a second forward stops (torch.utils.checkpoint, early_stop).
size_t last_that_saves(const Network& network, std::span<const size_t> layers);

}  // namespace lockstep
