#pragma once

#include <string>
#include <vector>

#include "cli/render/json.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::test {

/// The events of the timeline of a rehearsal, written to a file and read back.
cli::Json trace_of(const cli::Rehearsal& rehearsal);

/// What breaks the rules that viewers of traces rely on: on one track times grow and slices nest,
/// what begins without an end says that it hangs, bytes are numbers, arrows lie in slices. Empty:
/// nothing does.
std::vector<std::string> broken_rules(const cli::Json& events);

}  // namespace lockstep::test
