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

/// "did you mean `nearest`?", or the legal words when none is near and they are few.
std::string spelling_remedy(std::string_view word, const std::vector<std::string_view>& legal);

}  // namespace lockstep
