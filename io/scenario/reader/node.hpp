#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// A place in one of the files being read. Lines and columns (bytes) count from 1.
struct Mark {
  uint32_t file = 0;  ///< index into the list of files of the load
  int line = 0;
  int column = 0;
  int length = 1;  ///< bytes to underline
};

struct Node;
/// Nodes are immutable once built, so that aliases and merged trees share them.
using NodePtr = std::shared_ptr<const Node>;

struct Entry {
  std::string key;
  Mark mark;  ///< of the key
  NodePtr value;
};

/// One YAML value with its place. Keys are unique, aliases and `<<` are resolved.
struct Node {
  enum class Kind : uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;  ///< a scalar in quotes, or a block scalar
  bool faulty = false;  ///< null in place of a value that is already complained about
  int height = 1;       ///< levels of nesting, itself included
  int64_t size = 1;     ///< nodes of the subtree, shared ones counted as often as they appear
  Mark mark;
  std::string text;            ///< of a scalar
  std::vector<NodePtr> items;  ///< of a list
  std::vector<Entry> entries;  ///< of a map, in the order of the file

  const Entry* find(std::string_view key) const {
    for (const Entry& entry : entries) {
      if (entry.key == key) {
        return &entry;
      }
    }
    return nullptr;
  }
};

/// "a list", "a map", "null", "text": how messages name what they found.
std::string_view kind_name(const Node& node);

/// Bounds of one file and of the tree that it unfolds to.
struct DocumentLimits {
  size_t bytes = size_t{4} << 20;
  int depth = 64;
  int64_t nodes = 1'000'000;
};

/// Parses one YAML document strictly: no duplicate keys, no empty values, no tags, no second
/// document. Adds what is wrong to `diagnostics`; null when nothing can be made of the text.
/// `name` is the file as messages show it, `file` its index in the marks.
NodePtr parse_document(const std::string& text, const std::string& name, uint32_t file,
                       std::vector<Diagnostic>& diagnostics, const DocumentLimits& limits = {});

}  // namespace lockstep
