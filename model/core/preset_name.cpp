#include "model/core/preset_name.hpp"

#include <algorithm>
#include <cctype>

namespace lockstep {

std::string compact_preset_name(std::string_view name) {
  std::string compact;
  const auto is_digit = [&](size_t at) {
    return at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0;
  };
  for (size_t at = 0; at < name.size(); ++at) {
    const auto letter = static_cast<unsigned char>(name[at]);
    const bool is_point = letter == '.' && at > 0 && is_digit(at - 1) && is_digit(at + 1);
    if (std::isalnum(letter) != 0 || is_point) {  // 1.3b is not 13b
      compact += static_cast<char>(std::tolower(letter));
    }
  }
  // NVML writes "NVIDIA GeForce RTX 4090" and "Tesla T4"; Azure writes "Standard_ND96asr_v4".
  for (const std::string_view maker : {"nvidia", "tesla", "geforce", "standard"}) {
    if (compact.starts_with(maker) && compact.size() > maker.size()) {
      compact.erase(0, maker.size());
    }
  }
  return compact;
}

PresetAnswer find_preset_name(std::string_view asked, std::span<const std::string_view> names,
                              std::span<const PresetAlias> aliases,
                              std::span<const UnmodelledPreset> unmodelled) {
  using Verdict = PresetAnswer::Verdict;
  const std::string compact = compact_preset_name(asked);
  const auto is_asked = [&](std::string_view name) { return compact_preset_name(name) == compact; };
  if (const auto found = std::ranges::find_if(names, is_asked); found != names.end()) {
    return {Verdict::modelled, std::string(*found)};
  }
  if (const auto found = std::ranges::find_if(aliases, is_asked, &PresetAlias::alias);
      found != aliases.end()) {
    return {Verdict::modelled, std::string(found->name)};
  }
  if (const auto found = std::ranges::find_if(unmodelled, is_asked, &UnmodelledPreset::name);
      found != unmodelled.end()) {
    return {Verdict::not_modelled, std::string(found->nearest)};
  }
  return {};
}

}  // namespace lockstep
