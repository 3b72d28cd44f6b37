#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/program/completion.hpp"

namespace lockstep {

/// Completions in about half of their memory, each as fast to find. Of each number - the issue, how
/// long until the start, how long until the finish, outcome and source - it holds by how much it is
/// above the least of them, in as many bytes as the greatest of these needs.
struct PackedCompletions {
  std::shared_ptr<std::byte[]> bytes;
  int64_t size = 0;  ///< of `bytes`
};
PackedCompletions packed(std::span<const Completion> completions);

/// `bytes`: of packed(); `index` is below their number.
Completion completion_in(const std::byte* bytes, size_t index);

}  // namespace lockstep
