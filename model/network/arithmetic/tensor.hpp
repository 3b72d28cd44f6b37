#pragma once

#include <cstdint>
#include <span>

#include "model/core/values.hpp"

namespace lockstep {

// Kernels on whole tensors. (`scale`, `divide` and `accumulate` are in model/core/values.hpp.)

/// output = a + b, in fp32 (fp64 where an operand is; integers exactly), rounded once.
void add(const Values& a, const Values& b, Values& output);
/// output = input in the output's type: to nearest even, integers truncate.
void cast(const Values& input, Values& output);
/// destination = source; same type and size.
void copy(const Values& source, Values& destination);
/// Parts one after the other from the start of `flat`; the rest becomes 0 (padding). All
/// of one type.
void pack(std::span<const Values* const> parts, Values& flat);
/// The reverse: fills the parts from the start of `flat`.
void unpack(const Values& flat, std::span<Values* const> parts);

}  // namespace lockstep
