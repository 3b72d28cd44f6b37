#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/expression/source.hpp"

namespace lockstep {

/// Where the keys of a JSON object and their values stand in its text. The text has been parsed
/// without a fault. Entries of lists have the place of the list.
class JsonPlaces {
 public:
  using Path = std::vector<std::string>;  ///< keys from the outermost object on
  JsonPlaces(const std::string& file, const std::string& text);

  SourcePlace of_key(const Path& path) const;
  SourcePlace of_value(const Path& path) const;
  /// Of the first key that its object has had before.
  std::optional<SourcePlace> of_repeated_key() const;

 private:
  struct Offsets {
    size_t key = 0;  ///< behind the quote
    size_t value = 0;
  };

  void skip_space();
  std::string take_text();
  void take_list();
  void take_object();
  void take_value();
  SourcePlace place_at(size_t offset) const;

  const std::string* text_;  ///< while it is read
  std::string file_;
  std::vector<size_t> lines_;  ///< where they begin
  size_t at_ = 0;
  Path path_;
  std::map<Path, Offsets> offsets_;
  std::optional<size_t> repeated_key_;
};

}  // namespace lockstep
