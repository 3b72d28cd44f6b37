#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "model/core/site.hpp"

namespace lockstep {

/// A place in a strategy's own code, which findings call by what it does.
inline Site step_called(std::string_view description) {
  Site site;
  site.description = description;
  return site;
}

inline void add_steps(std::span<const std::string_view> descriptions, std::vector<Site>& sites) {
  for (const std::string_view description : descriptions) {
    sites.push_back(step_called(description));
  }
}

}  // namespace lockstep
