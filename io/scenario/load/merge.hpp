#pragma once

#include <string_view>

#include "io/scenario/reader/node.hpp"

namespace lockstep {

/// `over` merged over `base`, both maps of the named table ("scenario", "cluster", ..): maps merge
/// key by key; lists, scalars and objects replace; null asks for the default again. Which keys hold
/// maps and which hold objects, the tables say. Keys keep the order of `base`, new ones follow.
NodePtr merge(const NodePtr& base, const NodePtr& over, std::string_view table);

/// The map without the named keys.
NodePtr without(const NodePtr& map, const std::vector<std::string_view>& keys);

}  // namespace lockstep
