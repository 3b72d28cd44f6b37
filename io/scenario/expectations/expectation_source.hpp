#pragma once

#include <string>
#include <string_view>

#include "io/scenario/reader/reader.hpp"
#include "model/scenario/expectation.hpp"

namespace lockstep {

/// One expectation being read: its text, where the text begins, and the reader to complain to.
/// The parts of it that functions take are views into `text`.
struct ExpectationSource {
  Reader& reader;
  std::string_view text;
  SourcePlace place;

  SourcePlace at(size_t offset) const {
    SourcePlace shifted = place;
    shifted.column += static_cast<int>(offset);
    return shifted;
  }
  size_t offset_of(std::string_view part) const {
    return static_cast<size_t>(part.data() - text.data());
  }
  void fail(size_t offset, std::string message, std::string remedy) const {
    reader.fail_at(at(offset), std::move(message), std::move(remedy));
  }
};

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// `finding CODE or CODE at PLACE on RANKS`, `warning CODE`, `note CODE`, `no_finding CODE`; false
/// when the text begins with none of these words.
bool read_finding_expectation(const ExpectationSource& source, std::string_view rest,
                              Expectation& expectation);

}  // namespace lockstep
