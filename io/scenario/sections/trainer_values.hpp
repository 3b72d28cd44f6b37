#pragma once

#include "io/scenario/forms/format.hpp"

namespace lockstep {

/// Arguments of the Trainer that take values of several types: what is of none of them is an error
/// of the file. What a version or an accelerator refuses is decided where the trainer is built.
struct DevicesForm : FormWithoutWords {
  static constexpr std::string_view type = AnyForm::type;
  static std::optional<PlainValue> read(Reader& reader, const Node& node, const KeyRow& row);
};

/// A number of batches or a part of them.
struct BatchesForm : FormWithoutWords {
  static constexpr std::string_view type = AnyForm::type;
  static std::optional<PlainValue> read(Reader& reader, const Node& node, const KeyRow& row);
};

/// A bool, or `warn`.
struct WarnForm : FormWithoutWords {
  static constexpr std::string_view type = AnyForm::type;
  static std::optional<PlainValue> read(Reader& reader, const Node& node, const KeyRow& row);
};

/// A bool or a number.
struct SwitchForm : FormWithoutWords {
  static constexpr std::string_view type = AnyForm::type;
  static std::optional<PlainValue> read(Reader& reader, const Node& node, const KeyRow& row);
};

}  // namespace lockstep
