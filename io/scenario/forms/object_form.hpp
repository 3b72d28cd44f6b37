#pragma once

#include <optional>
#include <vector>

#include "io/scenario/classes/catalogue.hpp"
#include "io/scenario/forms/format.hpp"
#include "io/scenario/forms/key_row.hpp"
#include "io/scenario/reader/reader.hpp"
#include "model/scenario/object.hpp"

namespace lockstep {

/// An object taken apart, before its class is known: `Name`, `{Name: ..}` or `class_path`.
struct ObjectNode {
  std::string name;
  Mark mark;                        ///< of the name
  const Node* arguments = nullptr;  ///< null: none
};

/// Complains and gives nothing when the node has none of the spellings of an object.
std::optional<ObjectNode> take_object(Reader& reader, const Node& node, std::string_view key);

/// An object of a role: its class must be in the catalogue, positional arguments get their names,
/// and each argument its type checked.
std::optional<Object> read_object(Reader& reader, const Node& node, std::string_view key,
                                  ObjectRole role);
/// The arguments of a known class; `extra` names are legal too and are left out of the object.
std::vector<ObjectArgument> read_arguments(Reader& reader, const ObjectNode& object,
                                           const ClassRow& known,
                                           const std::vector<std::string_view>& extra = {});

/// A class that exists and is not in the catalogue: whoever prepares the role says that it is not
/// modelled. Named arguments are read, and none is checked.
Object other_object(Reader& reader, const ObjectNode& object);
/// Complains with the nearest name; `more` are names that the role has beside its classes.
void fail_unknown_class(Reader& reader, const ObjectNode& object, ObjectRole role,
                        const std::vector<std::string_view>& more = {});

template <ObjectRole Role>
struct ObjectForm : FormWithoutWords {
  static constexpr std::string_view type = "object";
  static std::optional<Object> read(Reader& reader, const Node& node, const KeyRow& row) {
    return read_object(reader, node, row.key, Role);
  }
};

/// One object, or a list of them.
template <ObjectRole Role>
struct ObjectsForm : FormWithoutWords {
  static constexpr std::string_view type = "object, or list of objects";
  static std::optional<std::vector<Object>> read(Reader& reader, const Node& node,
                                                 const KeyRow& row) {
    std::vector<Object> objects;
    if (node.kind != Node::Kind::list) {
      if (auto object = read_object(reader, node, row.key, Role)) {
        objects.push_back(std::move(*object));
      }
      return objects;
    }
    for (const NodePtr& item : node.items) {
      if (auto object = read_object(reader, *item, row.key, Role)) {
        objects.push_back(std::move(*object));
      }
    }
    return objects;
  }
};

}  // namespace lockstep
