#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Spelling of a preset by people, and its name here.
struct PresetAlias {
  std::string_view alias;
  std::string_view name;
};

/// A preset that exists in the world and is not modelled, and the modelled one that is most like
/// it.
struct UnmodelledPreset {
  std::string_view name;
  std::string_view nearest;
};

/// What a name of a preset means.
struct PresetAnswer {
  enum class Verdict : uint8_t { modelled, not_modelled, unknown };
  Verdict verdict = Verdict::unknown;
  std::string name{};  ///< as presets call it; of what is not modelled, the nearest; else empty
};

/// Letters and digits in lower case, without a maker's name in front: "NVIDIA A100-SXM4-40GB" and
/// "a100_sxm4_40gb" are one name.
std::string compact_preset_name(std::string_view name);

/// All comparisons are of compact names.
PresetAnswer find_preset_name(std::string_view asked, std::span<const std::string_view> names,
                              std::span<const PresetAlias> aliases,
                              std::span<const UnmodelledPreset> unmodelled);

}  // namespace lockstep
