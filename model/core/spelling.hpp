#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Optimal string alignment distance (Damerau-Levenshtein without crossing edits), case folded.
int edit_distance(std::string_view a, std::string_view b);

/// The legal word nearest to `word`, or empty when none is near (more than a third of its letters
/// differ). The first of equally near words wins.
std::string nearest_spelling(std::string_view word, const std::vector<std::string_view>& legal);

/// "did you mean `nearest`?", or empty when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& legal);

}  // namespace lockstep
