#include "rehearsal/text/fitted_text.hpp"

#include "model/core/characters.hpp"

namespace lockstep::cli {

namespace {

// Where the character with this number begins; the end of the text behind its last one.
size_t offset_of(std::string_view text, size_t character) {
  for (size_t offset = 0; offset < text.size(); ++offset) {
    if (begins_character(text[offset]) && character-- == 0) {
      return offset;
    }
  }
  return text.size();
}

}  // namespace

std::string with_first_characters(std::string_view text, size_t count) {
  return characters(text) <= count ? std::string(text)
                                   : std::string(text.substr(0, offset_of(text, count - 2))) + "..";
}

std::string with_last_characters(std::string_view text, size_t count) {
  const size_t all = characters(text);
  return all <= count ? std::string(text)
                      : ".." + std::string(text.substr(offset_of(text, all - (count - 2))));
}

}  // namespace lockstep::cli
