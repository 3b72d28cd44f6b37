#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// A page about a finding's code, a result's name or what a script calls.
struct Page {
  std::string_view name;   ///< "LS101", "step_time", "Fabric"
  std::string_view title;  ///< one line
  std::string_view text;   ///< what, why, how to fix; begins with a line feed
  /// A smallest scenario with exactly this finding; begins with a line feed; empty: none.
  std::string_view scenario{};
};

/// The pages of findings' codes.
std::vector<const Page*> finding_pages();

/// Null when there is none. A result of several parts (`breakdown.compute`) may have the page of
/// its family.
const Page* find_page(std::string_view name);

}  // namespace lockstep::cli
