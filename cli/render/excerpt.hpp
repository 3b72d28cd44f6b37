#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep::cli {

/// A mark below one line of a file.
struct Mark {
  int line = 0;
  int column = 0;
  std::string underlined;  ///< text to underline, looked for from the column on; empty: one word
  std::string label;
  bool subject = false;  ///< `^` instead of `-`
};

/// The lines of `file` that the marks name, in order, each with its marks below. Columns count
/// bytes. Nothing when the text of the file is not known.
std::string excerpt(const std::string& file, std::vector<Mark> marks, const Sources& sources,
                    const Style& style);

}  // namespace lockstep::cli
