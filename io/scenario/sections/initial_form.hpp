#pragma once

#include "io/scenario/forms/format.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {

/// `initial`: what tensors begin with.
struct InitialForm : FormWithoutWords {
  static constexpr std::string_view type = "map NAME: numbers";
  static std::optional<std::vector<TensorValues>> read(Reader& reader, const Node& node,
                                                       const KeyRow& row) {
    return read_initial(reader, node, row);
  }
};

}  // namespace lockstep
