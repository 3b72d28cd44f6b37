#include "io/scenario/forms/preset_form.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/scenario/names/spelling.hpp"
#include "model/cluster/presets.hpp"
#include "model/network/presets.hpp"

namespace lockstep {
namespace {

// "g5" names no machine: its sizes differ in GPUs.
std::vector<std::string> sizes_of(std::string_view family, const PresetKind& kind) {
  std::vector<std::string> sizes;
  const std::string compact = compact_preset_name(family);
  for (const std::string& name : kind.spellings()) {
    const size_t end = std::min(name.find_first_of(".-"), name.size());
    const bool is_modelled = kind.find(name).verdict == PresetAnswer::Verdict::modelled;
    if (is_modelled && compact_preset_name(name.substr(0, end)) == compact) {
      sizes.push_back(name);
    }
  }
  return sizes;
}

std::string remedy_of(const std::string& asked, const PresetKind& kind) {
  const std::vector<std::string> sizes = sizes_of(asked, kind);
  if (!sizes.empty()) {
    return fmt::format("name its size: {}", fmt::join(sizes, ", "));
  }
  const std::vector<std::string> spellings = kind.spellings();
  const std::string nearest =
      nearest_spelling(asked, std::vector<std::string_view>(spellings.begin(), spellings.end()));
  return nearest.empty()
             ? "`lockstep explain presets` lists them"
             : fmt::format("did you mean `{}`? `lockstep explain presets` lists all", nearest);
}

std::optional<std::string> read_preset(Reader& reader, const Node& node, const KeyRow& row,
                                       const PresetKind& kind) {
  const auto asked = TextForm::read(reader, node, row);
  return asked ? resolve_preset(reader, node, *asked, kind) : std::nullopt;
}

}  // namespace

std::optional<std::string> resolve_preset(Reader& reader, const Node& node,
                                          const std::string& asked, const PresetKind& kind) {
  const PresetAnswer answer = kind.find(asked);
  switch (answer.verdict) {
    case PresetAnswer::Verdict::modelled: return answer.name;
    case PresetAnswer::Verdict::not_modelled: return asked;
    case PresetAnswer::Verdict::unknown: break;
  }
  reader.fail(node.mark, fmt::format("there is no {} `{}`", kind.what, asked),
              remedy_of(asked, kind));
  return std::nullopt;
}

std::optional<std::string> ClusterPresetForm::read(Reader& reader, const Node& node,
                                                   const KeyRow& row) {
  return read_preset(reader, node, row, {"cluster preset", find_cluster_name, cluster_spellings});
}

std::optional<std::string> DevicePresetForm::read(Reader& reader, const Node& node,
                                                  const KeyRow& row) {
  return read_preset(reader, node, row, {"GPU preset", find_device_name, device_spellings});
}

std::optional<std::string> NetworkPresetForm::read(Reader& reader, const Node& node,
                                                   const KeyRow& row) {
  return read_preset(reader, node, row, {"model preset", find_network_name, network_spellings});
}

}  // namespace lockstep
