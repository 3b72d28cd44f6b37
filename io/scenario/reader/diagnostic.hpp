#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/expression/source.hpp"

namespace lockstep {

/// One thing that is wrong with an input file: where, what, and what to write instead.
struct Diagnostic {
  SourcePlace place;    ///< line 0: the whole file (it is missing, it is a directory)
  int length = 1;       ///< bytes to underline from `place`, on its line
  std::string message;  ///< one sentence without a full stop
  std::string remedy;   ///< what to write instead; empty when the message says it already
};

/// Texts of the files (and of the `--set` arguments) by the name that their places carry.
using Sources = std::map<std::string, std::string>;

/// Each diagnostic as "error: message", the place, the line with a caret below it, and the remedy.
/// Columns count bytes; the caret is below the right character of a UTF-8 line all the same.
std::string render(const std::vector<Diagnostic>& diagnostics, const Sources& sources);

/// Line `line` of a text, counted from 1, without its end; empty where the text has fewer.
std::string_view line_of(std::string_view text, int line);

}  // namespace lockstep
