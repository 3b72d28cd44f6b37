#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

/// The parts in which ours is known to differ from a recording, ascending; mostly none.
std::vector<std::string> known_differences(const std::string& recording);

/// The names of recordings with a known difference.
std::vector<std::string> excepted_recordings();

}  // namespace lockstep::test
