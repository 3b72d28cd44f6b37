#pragma once

#include "model/program/rank.hpp"
#include "tests/conformance/world.hpp"
#include "tests/property/bare_program.hpp"

namespace lockstep::test {

/// Buffers that a bare program has, and elements of one rank's part of them.
inline constexpr int32_t buffer_count = 3;
inline constexpr int64_t part_elements = 4;

/// Takes the rank's steps. Every use of a buffer comes after all earlier ones, so only a planted
/// defect lets the values depend on timing. `program` outlives the run.
Program interpret(Rank& rank, const BareProgram* program, Seen& seen);

}  // namespace lockstep::test
