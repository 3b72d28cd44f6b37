#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/scenario/reader/reader.hpp"

namespace lockstep {

/// The cases of a file, each merged over what it is based on: the file by default, another case
/// where it has the key `base`, and nothing where that is `none`.
class CaseBases {
 public:
  /// `file` is the merged file without its cases; `cases` the map of them. Both outlive this.
  CaseBases(Reader& reader, NodePtr file, const Node& cases)
      : reader_(reader), file_(std::move(file)), cases_(cases) {}

  /// The scenario of one case; null where something is wrong with it, which is complained about.
  NodePtr merged(const Entry& entry);

 private:
  NodePtr merge_over_base(const Entry& entry);
  /// Null: complained about.
  NodePtr base_of(const Entry& entry, const Entry& base);
  NodePtr only_version() const;

  Reader& reader_;
  NodePtr file_;
  const Node& cases_;
  std::map<std::string, NodePtr, std::less<>> known_;
  std::vector<std::string_view>
      open_;  ///< cases that are being merged, each the base of the one before
};

}  // namespace lockstep
