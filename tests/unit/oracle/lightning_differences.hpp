#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

/// The program still refuses the recording's scenario as not modelled yet.
bool is_awaited(const std::string& recording);

/// The parts in which ours is known to differ from a recording, ascending; mostly none.
std::vector<std::string> known_differences(const std::string& recording);

/// All names that either of them knows.
std::vector<std::string> excepted_recordings();

}  // namespace lockstep::test
