#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tidy {

/// A text file of the tree.
struct Source {
  std::string path;  ///< relative to the root, with '/'
  std::string text;
};

/// One breach of a rule: "path:line: what is wrong".
using Offences = std::vector<std::string>;

/// The position of what was not found.
inline constexpr size_t nowhere = std::string_view::npos;

/// Every text file of the working tree in the order of its path, without build folders, what git
/// keeps for itself, and fuzz corpora (which are arbitrary bytes).
std::vector<Source> text_files();
/// Those of them that are C++: .cpp and .hpp.
std::vector<Source> cpp_files();

/// `text` with every comment, string, character literal and preprocessor line turned into blanks,
/// so that positions and lines stay what they were.
std::string code_of(std::string_view text);

std::string place(const Source& source, size_t position);
/// True when `path` lies below the top-level folder ("model").
bool lies_in(std::string_view path, std::string_view folder);
bool is_word_letter(char letter);
/// The first position at or after `from` of `word` standing alone; nowhere when there is none.
size_t find_word(std::string_view code, std::string_view word, size_t from = 0);
bool has_word(std::string_view code, std::string_view word);
/// The bracket that closes the one at `open`, of its own kind only; nowhere when it is never
/// closed.
size_t closing(std::string_view code, size_t open);
/// The first letter at or after `from` that is no white space; the end when there is none.
size_t skip_space(std::string_view code, size_t from);

/// Fails the running test case once for each offence.
void expect_none(const Offences& offences);

}  // namespace lockstep::tidy
