#include "model/cluster/software.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

constexpr auto software_names = std::to_array<std::string_view>(
    {"pytorch", "compiled", "fused", "deepspeed", "megatron", "graph"});

}  // namespace

std::vector<std::string_view> software_profile_names() {
  return {software_names.begin(), software_names.end()};
}

std::optional<KernelChoice> kernel_choice(std::string_view text) {
  constexpr std::string_view without = " without ";
  const size_t at = text.find(without);
  const auto* const found = std::ranges::find(software_names, text.substr(0, at));
  if (found == software_names.end()) {
    return std::nullopt;
  }
  KernelChoice choice{.software = static_cast<SoftwareProfile>(found - software_names.begin())};
  if (at != std::string_view::npos) {
    choice.without = text.substr(at + without.size());
  }
  return choice;
}

}  // namespace lockstep
