#pragma once

#include <span>
#include <string>
#include <string_view>

#include "explain/json_text.hpp"

namespace lockstep::cli {

enum class ClaimVerdict : uint8_t { right, right_only_if, wrong };

/// A claim of public guides to training on several GPUs, and the scenario that shows what is so.
struct GuideClaim {
  std::string_view name;
  std::string_view claim;  ///< in our own words
  ClaimVerdict verdict = ClaimVerdict::wrong;
  std::string_view only_if;   ///< of right_only_if: the condition
  std::string_view versions;  ///< for which the verdict holds: "all", "Lightning 2.x"
  std::string_view reason;
  std::string_view scenario;  ///< `scenarios/FILE` or `scenarios/FILE:CASE`
  /// By its name in the registry: it is not modelled, and the scenario shows its calls without it.
  std::string_view missing_strategy{};
  /// The scenario's cases are pairs of ddp and ddp_sharded, which its page predicts.
  bool is_swept = false;
};

std::span<const GuideClaim> guide_claims();
/// Null when there is none.
const GuideClaim* find_guide_claim(std::string_view name);

/// All claims, three or four lines each.
std::string guides_text();
/// One claim with the whole text of its scenario.
std::string guide_text(const GuideClaim& claim);
Json guides_json();
Json guide_json(const GuideClaim& claim);

}  // namespace lockstep::cli
