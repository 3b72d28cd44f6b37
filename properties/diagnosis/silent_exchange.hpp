#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/core/site.hpp"
#include "properties/diagnosis/member_class.hpp"

namespace lockstep {

/// Equal calls of different statements, so that every pair completes: in a different order the
/// values are exchanged, and those of different keys of a log are mixed.
struct SilentExchange {
  size_t other = 0;        ///< the class that differs from the first
  size_t position = 0;     ///< of the first call that differs
  bool exchanged = false;  ///< both make the same calls in different orders; else keys are mixed
};

/// The first among `classes`, whose sequences of calls are equal in kind and arguments; none of
/// more than `pairs_max` pairs is compared.
std::optional<SilentExchange> silent_exchange(const Sites& sites,
                                              const std::vector<MemberClass>& classes,
                                              size_t pairs_max);

}  // namespace lockstep
