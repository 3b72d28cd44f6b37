#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/scenario/forms/format.hpp"
#include "model/core/preset_name.hpp"

namespace lockstep {

/// One kind of presets, by the names that people use.
struct PresetKind {
  std::string_view what;  ///< "cluster preset", for messages
  PresetAnswer (*find)(std::string_view);
  std::vector<std::string> (*spellings)();
};

/// The name of the preset in full. What exists and is not modelled stays as it is written: what
/// prepares the scenario says so. Complains about any other name and gives nothing.
std::optional<std::string> resolve_preset(Reader& reader, const Node& node,
                                          const std::string& asked, const PresetKind& kind);

struct ClusterPresetForm : FormWithoutWords {
  static constexpr std::string_view type = TextForm::type;
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row);
};

struct DevicePresetForm : FormWithoutWords {
  static constexpr std::string_view type = TextForm::type;
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row);
};

struct NetworkPresetForm : FormWithoutWords {
  static constexpr std::string_view type = TextForm::type;
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row);
};

}  // namespace lockstep
