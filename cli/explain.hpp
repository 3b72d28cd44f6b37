#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

/// A page about a finding's code or a result's name.
struct Page {
  std::string_view name;   ///< "LS101", "step_time"
  std::string_view title;  ///< one line
  std::string_view text;   ///< what, why, how to fix, example; begins with a line feed
};

/// Null when there is none. A result of several parts (`breakdown.compute`) may have the page of
/// its family.
const Page* find_page(std::string_view name);

}  // namespace lockstep::cli
