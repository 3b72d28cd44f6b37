#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What to write in place of an argument that says how ranks share a model, under the name that
/// another strategy has for it, or that people use: the name of `strategy`, or, where it has no
/// such size, what does. Empty for other arguments.
std::string layout_key_remedy(std::string_view strategy, std::string_view key,
                              const std::vector<std::string_view>& legal);

}  // namespace lockstep
