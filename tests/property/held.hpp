#pragma once

#include <functional>

namespace lockstep::test {

/// Whether a property holds of what its body draws: of `cases` drawn from seed 1, or of those that
/// the environment's RC_PARAMS asks for. A failure prints the line that repeats it: `test` is the
/// name of the Catch2 test case, `program` the program that it is in.
bool holds(const char* test, int cases, const std::function<void()>& body,
           const char* program = "property_tests");

}  // namespace lockstep::test
